"""Commits are found by names as if each row was looked at."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.cluster.consumers.group_lag import ABSENT
from streaming.cluster.consumers.group_moves import Place, rows_of
from streaming.kafka.groups.commit_table import CommitRows

GROUPS, TOPICS = ("g", "h", "no-commit", "i"), ("orders", "", "bills", "")
OF_SHARE = ("", "")
"""Topics of which only the id is known."""

partitions = st.integers(-2, 3) | st.sampled_from([2**31 - 1, -(2**31)])
commits = st.tuples(st.sampled_from([0, 1, 3]), st.integers(0, 3), partitions, st.booleans())
places = st.tuples(st.sampled_from(["g", "h", "i", "no-commit", "unknown"]), st.sampled_from(["orders", "bills", "unknown"]), partitions)


def table(found: list[tuple[int, int, int, bool]]) -> CommitRows:
    group, topic, partition, share = (np.array([each[at] for each in found], np.int32) for at in range(4))
    none = np.zeros(len(found), np.int64)
    return CommitRows(
        key=none,
        group=group,
        topic=topic,
        topic_id=topic,
        partition=partition,
        log=group,
        share=share.astype(np.bool_),
        offset=none,
        commit_ms=none,
        expire_ms=none,
        delivered=none,
        leader_epoch=none,
        former_ms=none,
        resumed=none,
        moved_ms=none,
        presence=none,
        done=np.full(len(found), None, np.object_),
        group_names=GROUPS,
        topic_names=TOPICS,
        topic_ids=("",),
    )


def plain(found: list[tuple[int, int, int, bool]], wanted: list[Place]) -> list[int]:
    at = {(GROUPS[group], TOPICS[topic], number): row for row, (group, topic, number, share) in enumerate(found) if not share}
    return [at.get(place, ABSENT) for place in wanted]


@given(st.lists(commits, max_size=12), st.lists(places, max_size=6))
@example([], [("g", "orders", 0)])
@example([(0, 0, -1, False), (0, 0, 1, False)], [("g", "orders", -1), ("g", "orders", 1), ("unknown", "unknown", -1)])
@example([(0, 0, 1, True), (1, 0, 1, False)], [("g", "orders", 1), ("h", "orders", 1)])
@example([(0, 0, 1, False), (0, 0, 1, False)], [("g", "orders", 1), ("g", "orders", 1)])
def test_each_place_has_the_row_that_a_look_at_all_of_them_finds(found: list[tuple[int, int, int, bool]], wanted: list[Place]) -> None:
    assert rows_of(table(found), wanted) == plain(found, wanted)
