"""What is said of rebalances."""

from streaming.broker.protocol.group_json import GroupRebalance, RebalancedMember
from streaming.cluster.consumers.group_rebalances import Lately
from streaming.cluster.verdicts.group_words import rebalance_text, storm_text
from streaming.common.units import TimeWords
from tests.tables import each_row

NOW_MS = 1_700_000_000_000
TIMES = TimeWords(NOW_MS)
SECOND, MINUTE = 1_000, 60_000


def member(number: int) -> RebalancedMember:
    return RebalancedMember(client=f"app-{number}", host="/10.0.0.7")


def rebalance(**values: object) -> GroupRebalance:
    given = {"at_ms": NOW_MS - MINUTE, "kind": "members", "generation": 12, "generations": 1, "members": 3}
    return GroupRebalance(**{**given, "joined_members": 0, "left_members": 0, **values})  # type: ignore[arg-type]


def left(number: int, ago_ms: int = MINUTE) -> GroupRebalance:
    return rebalance(at_ms=NOW_MS - ago_ms, left_members=1, left=[member(number)])


@each_row(
    ("of", "text"),
    [
        (rebalance(), "generation 12, 3 members; nobody joined or left"),
        (rebalance(joined_members=1, joined=[member(1)]), "generation 12, 3 members; app-1 (/10.0.0.7) joined"),
        (
            rebalance(members=1, joined_members=1, joined=[member(1)], left_members=5, left=[member(2), member(3), member(4), member(5)]),
            "generation 12, 1 member; app-1 (/10.0.0.7) joined; app-2 (/10.0.0.7), app-3 (/10.0.0.7), app-4 (/10.0.0.7) and 2 more left",
        ),
        (rebalance(joined_members=-1, left_members=-1), "generation 12, 3 members; who joined or left is not on disk any more"),
        (rebalance(kind="metadata"), "generation 12, 3 members; partitions or topics came or went"),
        (
            rebalance(generations=3, unfinished=2),
            "generation 12, 3 members; nobody joined or left; 2 generations before it had no assignment",
        ),
        (
            rebalance(kind="rejoined", joined_members=1, joined=[member(1)]),
            "app-1 (/10.0.0.7) came back under its group.instance.id, without a rebalance",
        ),
    ],
)
def test_a_rebalance_in_a_line(of: GroupRebalance, text: str) -> None:
    assert rebalance_text(of, NOW_MS) == f"2023-11-14T22:12:20Z (1m ago): {text}"


def test_names_can_neither_hide_nor_pretend_anything() -> None:
    hostile = RebalancedMember(client='a\x1b[2J", "b', host="/h\nx")
    text = rebalance_text(rebalance(joined_members=1, joined=[hostile]), NOW_MS)
    assert text.isprintable()
    assert text.endswith(r'; "a\u001b[2J\", \"b" ("/h\nx") joined')


def test_a_time_that_is_not_stored() -> None:
    assert rebalance_text(rebalance(at_ms=-1), NOW_MS).startswith("at a time that is not stored: generation 12")


def storm(**values: int) -> Lately:
    return Lately(
        **{"generations": 60, "members": 3, "in_a_row": 41, "first_ms": NOW_MS - 10 * MINUTE, "last_ms": NOW_MS - 9 * SECOND, **values}
    )


def test_a_storm_names_who_comes_and_goes_most_often() -> None:
    some = [left(1), left(1), left(2), rebalance(joined_members=2, joined=[member(1), member(2)]), left(3, ago_ms=31 * MINUTE)]
    assert storm_text(storm(), some, TIMES) == (
        "it has rebalanced 41 times within 9m 51s, with 3 members at most, last 9s ago; of the last 4 rebalances, since "
        "2023-11-14T22:12:20Z (1m ago), app-1 (/10.0.0.7) left 2 times and joined 1 time"
    )


def test_of_how_many_rebalances_a_count_is_and_since_when_these_are_is_said() -> None:
    came = rebalance(at_ms=NOW_MS - 6 * MINUTE, joined_members=1, joined=[member(1)])
    some = [left(1), rebalance(at_ms=NOW_MS - 2 * MINUTE, joined_members=1, joined=[member(1)]), left(1, ago_ms=3 * MINUTE), came]
    assert storm_text(storm(), some, TIMES).endswith(
        "of the last 4 rebalances, since 2023-11-14T22:07:20Z (6m ago), app-1 (/10.0.0.7) left 2 times and joined 2 times"
    )
    before = [left(2, ago_ms=ago * MINUTE) for ago in range(11, 20)]
    assert storm_text(storm(), [*some, *before], TIMES) == storm_text(storm(), some, TIMES), "what was before a pause"


def test_a_storm_in_which_the_same_members_stay_names_nobody() -> None:
    assert storm_text(storm(first_ms=NOW_MS - 9 * SECOND, members=1), [rebalance()], TIMES) == (
        "it has rebalanced 41 times within 1m, with 1 member at most, last 9s ago"
    )
