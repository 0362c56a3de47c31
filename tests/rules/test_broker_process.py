"""What is concluded from the locks of log dirs, look by look."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from streaming.rules.broker_process import NEVER_LOOKED, QUIET_MS, DirLock, LockState, ProcessLook, ProcessState, look
from tests.tables import each_row

T = 1_700_000_000_000
LONG_AGO = T - 2 * QUIET_MS
A, B = (1, 10), (1, 11)
LOCKED, FREE = DirLock(LockState.LOCKED, A), DirLock(LockState.FREE, A)
LOCKED_B, FREE_B = DirLock(LockState.LOCKED, B), DirLock(LockState.FREE, B)
OTHER_FREE = DirLock(LockState.FREE, (1, 12))
DELETED, MISSING = DirLock(LockState.DELETED), DirLock(LockState.MISSING, why="/d1/.lock does not exist")
REFUSED = DirLock(LockState.UNKNOWN, why="/d1/.lock may not be read")
MAIN = DirLock(LockState.FREE, A, keeps_metadata=True)
MAIN_ALONE = (MAIN, REFUSED)
UP, ENDED, NOBODY, UNKNOWN = ProcessState.UP, ProcessState.ENDED, ProcessState.FREE, ProcessState.UNKNOWN


@dataclass(frozen=True, slots=True)
class Step:
    """A look at some locks, so many seconds after the first, with the last write so many seconds before or after that."""

    at: float
    locks: Sequence[DirLock]
    written: float = -600

    def after(self, before: ProcessLook) -> ProcessLook:
        return look(before, self.locks, T + round(self.written * 1000), T + round(self.at * 1000))


def states(*steps: Step) -> list[ProcessState]:
    found, before = [], NEVER_LOOKED
    for step in steps:
        before = step.after(before)
        found.append(before.state)
    return found


def last(*steps: Step) -> ProcessLook:
    before = NEVER_LOOKED
    for step in steps:
        before = step.after(before)
    return before


KILLED = (Step(0, [LOCKED], 0), Step(5, [FREE], 2))
LOST = (Step(10, [FREE], 9), Step(15, [FREE], 14))
GROWS = (Step(0, [FREE], -1), Step(5, [FREE], 4))


@each_row(
    ("what", "steps", "expected"),
    [
        ("one that is held is enough", [Step(0, [LOCKED, FREE_B])], [UP]),
        ("also where another one may not be asked", [Step(0, [REFUSED, LOCKED])], [UP]),
        ("seen held before: it has ended, at once", KILLED, [UP, ENDED]),
        ("a log dir that it had given up does not matter", [Step(0, [LOCKED, FREE_B]), Step(5, [FREE, FREE_B])], [UP, ENDED]),
        ("nothing was written for long: nobody has them", [Step(0, [FREE, FREE_B])], [NOBODY]),
        ("something was written lately: it may run where its locks are not seen", [Step(0, [FREE], -59)], [UNKNOWN]),
        ("by a clock that is ahead", [Step(0, [FREE], 100)], [UNKNOWN]),
        ("nobody ever wrote", [Step(0, [FREE], -T / 1000 - 0.001)], [UNKNOWN]),
        ("files change though nobody holds them", [Step(0, [FREE], -600), Step(5, [FREE], 4)], [NOBODY, UNKNOWN]),
        ("also when they do not change any more", [*GROWS, Step(500, [FREE], 4)], [UNKNOWN] * 3),
        ("until one was seen held", [*GROWS, Step(9, [LOCKED], 8), Step(14, [FREE], 8)], [UNKNOWN] * 2 + [UP, ENDED]),
        ("the metadata log may be closed after the locks", [*KILLED, Step(10, [FREE], 6), Step(15, [FREE], 6)], [UP, ENDED, ENDED, ENDED]),
        ("locks that were lost", [*KILLED, *LOST], [UP, ENDED, ENDED, UNKNOWN]),
        ("and then nobody writes", [*KILLED, *LOST, Step(76, [FREE], 14)], [UP, ENDED, ENDED, UNKNOWN, ENDED]),
        ("another file in its place says nothing", [Step(0, [LOCKED], 0), Step(5, [OTHER_FREE], 2)], [UP, UNKNOWN]),
        ("deleted in an orderly end", [Step(0, [LOCKED, LOCKED_B], 0), Step(5, [DELETED, DELETED], 4)], [UP, ENDED]),
        ("of which one log dir is enough, where the other was given up", [Step(0, [DELETED, MISSING], -1)], [NOBODY]),
        ("but not where the other may not be asked", [Step(0, [DELETED, REFUSED], -1)], [UNKNOWN]),
        ("it may have given up the one, and hold the other", [Step(0, [FREE, REFUSED])], [UNKNOWN]),
        ("no node runs without its metadata log", [Step(0, [MAIN, REFUSED])], [NOBODY]),
        ("and it writes there", [Step(0, [REFUSED, MAIN], -59)], [UNKNOWN]),
        ("and goes on with that", [Step(0, MAIN_ALONE), Step(5, MAIN_ALONE, 4), Step(99, MAIN_ALONE, 4)], [NOBODY, UNKNOWN, UNKNOWN]),
        ("it is not seen to end", [Step(0, [LOCKED, REFUSED], 0), Step(5, MAIN_ALONE, 2), Step(99, MAIN_ALONE, 2)], [UP, UNKNOWN, NOBODY]),
        ("another one that is held is enough", [Step(0, [MAIN, LOCKED_B])], [UP]),
        ("deleted by somebody", [Step(0, [LOCKED], 0), Step(5, [MISSING], 0)], [UP, UNKNOWN]),
        ("one of two", [Step(0, [FREE, MISSING])], [NOBODY]),
        ("a copy without the files that begin with a dot", [Step(0, [MISSING])], [NOBODY]),
        ("a copy that was just made", [Step(0, [MISSING], -10)], [UNKNOWN]),
        ("a lock that is missing while the broker writes", [Step(0, [MISSING]), Step(5, [MISSING], 4)], [NOBODY, UNKNOWN]),
        ("no log dir can be read", [Step(0, [])], [UNKNOWN]),
        ("started again", [*KILLED, Step(60, [LOCKED], 59)], [UP, ENDED, UP]),
    ],
)  # fmt: skip
def test_states(what: str, steps: Sequence[Step], expected: list[ProcessState]) -> None:
    assert states(*steps) == expected


HELD_BOTH, HELD_ONE = Step(0, [LOCKED, LOCKED_B]), Step(0, [LOCKED, REFUSED])


@each_row(
    ("what", "steps", "expected"),
    [
        ("of two, one cannot be asked when the other is released", [HELD_BOTH, Step(5, [FREE, REFUSED])], 5),
        ("nor could it be before", [HELD_ONE, Step(5, [FREE, REFUSED])], 5),
        ("the first time counts", [HELD_ONE, Step(5, [FREE, REFUSED]), Step(10, [FREE, REFUSED])], 5),
        ("deleted in an orderly end", [HELD_BOTH, Step(5, [DELETED, REFUSED])], 5),
        ("long ago, so the other may be held", [Step(0, [DELETED, LOCKED_B]), Step(5, [DELETED, REFUSED])], None),
        ("no lock was seen held", [Step(0, [FREE, REFUSED])], None),
        ("the one that was held cannot be asked", [Step(0, [LOCKED, FREE_B]), Step(5, [REFUSED, FREE_B])], None),
        ("deleted by somebody: the broker may hold it", [HELD_BOTH, Step(5, [MISSING, REFUSED])], None),
        ("held by another program", [HELD_BOTH, Step(5, [DirLock(LockState.UNKNOWN, A, "a program"), REFUSED])], None),
        ("held again", [HELD_BOTH, Step(5, [FREE, REFUSED]), Step(10, [LOCKED, REFUSED])], None),
    ],
)  # fmt: skip
def test_a_lock_was_released_where_others_cannot_be_asked(what: str, steps: Sequence[Step], expected: int | None) -> None:
    assert last(*steps).released_ms == (-1 if expected is None else T + 1000 * expected)
    assert last(*steps).state is not ENDED


def test_the_end_lies_between_the_last_sign_of_life_and_the_first_look_without_one() -> None:
    found = last(*KILLED)
    assert (found.last_ms, found.since_ms) == (T + 2_000, T + 5_000), "it wrote after the look at which it was held"
    assert last(*KILLED, Step(10, [FREE], 2), Step(15, [FREE], 2)) == found
    hung = last(Step(0, [LOCKED], -300), Step(5, [FREE], -300))
    assert (hung.last_ms, hung.since_ms) == (T, T + 5_000), "it had not written for long, and was there"


def test_a_start_is_known_where_it_was_seen_down_before() -> None:
    assert last(Step(0, [LOCKED])).since_ms == -1
    assert last(*KILLED, Step(60, [LOCKED], 59), Step(65, [LOCKED], 64)).since_ms == T + 60_000


def test_a_reason_is_that_of_the_first_that_is_not_known() -> None:
    assert last(Step(0, [FREE, REFUSED])).why == "/d1/.lock may not be read"
    assert "change" in last(Step(0, [FREE]), Step(5, [FREE], 1)).why
    assert (last(Step(0, [LOCKED])).why, last(*KILLED).why) == ("", "")


_ANSWERS = st.sampled_from([LOCKED, FREE, DELETED, MISSING, REFUSED])
_STEPS = st.lists(st.tuples(st.lists(_ANSWERS, max_size=3), st.booleans()), min_size=1, max_size=12)


@given(_STEPS)
def test_nobody_is_down_whose_lock_is_held_or_not_known_and_every_unknown_has_its_reason(steps: list[tuple[list[DirLock], bool]]) -> None:
    before, written, was_held = NEVER_LOOKED, LONG_AGO, False
    for number, (locks, writes) in enumerate(steps):
        now = T + 5_000 * number
        written = now if writes else written
        found = look(before, locks, written, now)
        answers = {each.state for each in locks}
        assert (found.state is UP) == (LockState.LOCKED in answers)
        if found.state in (ENDED, NOBODY):
            assert answers <= {LockState.FREE, LockState.DELETED, LockState.MISSING}
            assert answers
            assert was_held or found.state is NOBODY
            assert 0 <= found.last_ms <= now
            assert found.since_ms <= now
        assert bool(found.why) == (found.state is UNKNOWN)
        was_held = was_held or LockState.LOCKED in answers
        before = found
