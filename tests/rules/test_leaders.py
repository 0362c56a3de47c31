"""Which replica speaks for its partition."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.rules.partition_values import LEADER_UNKNOWN, NO_LEADER, ReplicaColumns, Roles, assign_roles
from tests.tables import each_row


class Replica(NamedTuple):
    broker: int
    leader: int = LEADER_UNKNOWN
    leader_epoch: int = -1
    log_epoch: int = -1
    end_offset: int = 0
    silent: bool = False
    partition: int = 0


def roles_of(replicas: list[Replica]) -> Roles:
    columns = {
        name: np.array([getattr(each, name) for each in replicas], np.bool_ if name == "silent" else np.int64) for name in Replica._fields
    }
    return assign_roles(ReplicaColumns(**columns))


def speaker(*replicas: Replica) -> int:
    """The broker that speaks for the only partition."""
    (chosen,) = np.flatnonzero(roles_of(list(replicas)).speaks)
    return replicas[chosen].broker


@each_row(
    ("expected", "replicas"),
    [
        pytest.param(5, [Replica(5)], id="a single replica, whatever is known of it"),
        pytest.param(5, [Replica(5, leader=7, leader_epoch=3, silent=True)], id="a single replica that is silent and follows"),
        pytest.param(
            2,
            [Replica(1, 2, 4, log_epoch=9, end_offset=90), Replica(2, 2, 4), Replica(3, 2, 4)],
            id="the leader, though another log is longer",
        ),
        pytest.param(
            3,
            [Replica(1, leader=1, leader_epoch=4), Replica(3, leader=3, leader_epoch=5)],
            id="the leader by the highest epoch, though the old one still believes in itself",
        ),
        pytest.param(
            1,
            [Replica(1), Replica(2, leader=1, leader_epoch=4, log_epoch=4, end_offset=9)],
            id="the leader by the metadata of another broker, its own unreadable",
        ),
        pytest.param(
            2,
            [Replica(1, NO_LEADER, 6, log_epoch=4, end_offset=90), Replica(2, 1, 5, log_epoch=5, end_offset=10)],
            id="the highest last epoch where the newest metadata names no leader",
        ),
        pytest.param(
            1,
            [Replica(1, 9, 6, log_epoch=5, end_offset=11), Replica(2, 9, 6, log_epoch=5, end_offset=10)],
            id="the longest log where the leader is not observed",
        ),
        pytest.param(
            1,
            [Replica(2, log_epoch=5, end_offset=10), Replica(1, log_epoch=5, end_offset=10), Replica(3, log_epoch=5, end_offset=10)],
            id="the lowest broker id where logs are alike",
        ),
        pytest.param(
            2,
            [Replica(1, 1, 4, log_epoch=4, end_offset=90, silent=True), Replica(2, 1, 4), Replica(3, 1, 4, silent=True)],
            id="one that is heard rather than a silent leader",
        ),
        pytest.param(
            3,
            [Replica(1, 1, 4, silent=True), Replica(2, 1, 4), Replica(3, 3, 5)],
            id="the new leader when the old one is silent",
        ),
        pytest.param(
            2,
            [Replica(1, 2, 4, end_offset=90, silent=True), Replica(2, 2, 4, silent=True)],
            id="the leader where all are silent",
        ),
        pytest.param(
            2,
            [Replica(1), Replica(2, leader=2, leader_epoch=7, silent=True), Replica(2, leader=2, leader_epoch=7)],
            id="one of two that call themselves the same broker",
        ),
        pytest.param(
            2**31 - 1,
            [Replica(0, 2**31 - 1, 2**31 - 1), Replica(2**31 - 1)],
            id="ids and epochs as large as they get",
        ),
    ],
)
def test_speaks_for_the_partition(expected: int, replicas: list[Replica]) -> None:
    assert speaker(*replicas) == expected
    assert speaker(*reversed(replicas)) == expected


def test_only_the_leader_of_the_newest_metadata_leads_and_all_replicas_share_its_epoch() -> None:
    roles = roles_of([Replica(1, leader=1, leader_epoch=4), Replica(3, leader=3, leader_epoch=5), Replica(2)])
    assert roles.leads.tolist() == [False, True, False]
    assert roles.leader_epoch.tolist() == [5, 5, 5]


@pytest.mark.parametrize(("leader", "epoch", "expected"), [(LEADER_UNKNOWN, -1, -1), (NO_LEADER, 6, 6)])
def test_nobody_leads_where_no_leader_is_known(leader: int, epoch: int, expected: int) -> None:
    roles = roles_of([Replica(1, leader, epoch)])
    assert not roles.leads.any()
    assert roles.leader_epoch.tolist() == [expected]


def test_no_replicas_have_no_roles() -> None:
    assert len(roles_of([]).speaks) == 0


REPLICAS = st.builds(
    Replica,
    broker=st.integers(0, 4),
    leader=st.integers(-2, 4),
    leader_epoch=st.integers(-1, 3),
    log_epoch=st.integers(-1, 3),
    end_offset=st.integers(0, 3),
    silent=st.booleans(),
    partition=st.integers(0, 3),
)


@given(st.lists(REPLICAS, unique_by=lambda replica: (replica.partition, replica.broker)))
def test_every_partition_has_exactly_the_speaker_that_the_rule_names_one_by_one(replicas: list[Replica]) -> None:
    speaks = roles_of(replicas).speaks
    for partition in {replica.partition for replica in replicas}:
        of_it = [replica for replica in replicas if replica.partition == partition]
        known = [(replica.leader_epoch, replica.leader) for replica in of_it if replica.leader != LEADER_UNKNOWN]
        leader = max(known)[1] if known else LEADER_UNKNOWN
        heard = [replica for replica in of_it if not replica.silent] or of_it
        leading = [replica for replica in heard if replica.broker == leader]
        expected = leading or [max(heard, key=lambda each: (each.log_epoch, each.end_offset, -each.broker))]
        assert [replica for replica, chosen in zip(replicas, speaks, strict=True) if chosen and replica.partition == partition] == expected
