"""Which of an agent's answers speaks: the last one whose journal's end has been reached."""

from hypothesis import given
from hypothesis import strategies as st

from streaming.cluster.view.decisions import Decisions, End, Round, Rounds
from tests.catalog.catalogs import catalog


def decisions(high_watermark: int) -> Decisions:
    return Decisions(catalog(logs=[{"high_watermark": high_watermark}]))


def stated(found: Decisions | None) -> int | None:
    return None if found is None else int(found.high_watermark[0])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=30))
def test_a_round_speaks_once_its_end_is_reached(steps: list[tuple[bool, int]]) -> None:
    rounds, reached, ends, end = Rounds(), -1, {}, 0
    for number, (asks, far) in enumerate(steps):
        if asks:
            end += far
            ends[number] = end
            rounds = rounds.updated(Round(decisions(number), End("j", end)))
        else:
            reached = min(reached + far, end)
            rounds = rounds.arrived(End("j", reached))
        speaking = stated(rounds.speaks)
        assert speaking is None or ends[speaking] <= reached
        assert (speaking is None) == all(each > reached for each in ends.values())
        if reached == end and ends:
            assert speaking == max(ends)
            assert not rounds.ahead
        elif ends:
            assert stated(rounds.ahead[-1] if rounds.ahead else rounds.speaks) == max(ends)


def test_many_rounds_do_not_keep_one_another_from_speaking() -> None:
    rounds = Rounds()
    for number in range(100):  # each end is ahead of what was read
        rounds = rounds.updated(Round(decisions(number), End("j", number))).arrived(End("j", number - 1))
    assert stated(rounds.speaks) == 98


def test_a_journal_that_is_no_more_is_not_waited_for() -> None:
    rounds = Rounds().updated(Round(decisions(1), End("old", 9))).updated(Round(decisions(2), End("new", 1)))
    assert stated(rounds.arrived(End("new", 1)).speaks) == 2
    assert stated(rounds.arrived(End("old", 9)).speaks) is None


def test_what_is_no_answer_of_a_journal_speaks_at_once() -> None:
    assert stated(Rounds().updated(Round(decisions(1), None)).speaks) == 1


def test_an_agent_that_begins_anew_is_as_far_as_its_new_beginning() -> None:
    """In the same process under another number, or in another process from 0 on."""
    rounds = Rounds().arrived(End("r.1", 50))
    for end in (End("r.2", 30), End("s.1", 2)):
        rounds = rounds.updated(Round(decisions(7), End(end.journal, end.seq + 1))).arrived(end)
        assert (rounds.reached, stated(rounds.ahead[-1] if rounds.ahead else None)) == (end, 7)
        rounds = rounds.arrived(End(end.journal, end.seq + 1))
        assert stated(rounds.speaks) == 7
