"""Why replicas are out of sync: each cause where the disks show it, and none where they do not."""

from typing import Any

import pytest

from streaming.broker.protocol.cluster_messages import AffectedPartition, PartitionCounts, Registered, TopicCounts
from streaming.broker.protocol.status_messages import LogDirStatus, ProcessStatus
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.common.catalog import packed_epochs
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.broker_process import LockState, ProcessState
from tests.view.reported import Facts
from tests.view.rows import log, new_table
from tests.worlds.hosts import broker, log_dir
from tests.worlds.problems import NOW_MS, agent, around, only, well

LACKS = AffectedPartition(topic="orders", partition=0, problem="under_replicated", leader=1, in_sync=[1], out_of_sync=[2], electable=[1])
COUNTS = PartitionCounts(topics=[TopicCounts(topic="orders", partitions=1, under_replicated=1)], affected=[LACKS]).pack()
FULL = 1 << 40


def replica(broker: int, epochs: dict[int, int] | None = None, configs: str = "", **values: Any) -> Any:
    """A replica of a partition that broker 1 leads in epoch 7."""
    facts = Facts(replicas=(1, 2), isr=(1,), configs=configs, epochs=packed_epochs(epochs or {}, {}))
    given = {"log_end_offset": 100, "leader": 1, "leader_epoch": 7, "log_dir": "/data"}
    return log(broker=broker, topic_id="o", agent=f"a{broker}", facts=facts.encode(), **given | values)


def why(leader: Any, follower: Any, *dirs: LogDirStatus, up: bool = True, phase: str = "", lock: str = "") -> str:
    """What the problem says behind who is in sync."""
    registered = [
        Registered(broker=1, fenced=False),
        Registered(broker=2, fenced=bool(phase), phase=phase, since_ms=NOW_MS - 90_000, replicas=True),
    ]
    process = ProcessStatus(state=ProcessState.UP) if lock else None
    where = dirs or (log_dir("/data", 2, free=FULL, checkpoint_ms=NOW_MS),)
    there = broker(2, appended_ms=NOW_MS - 500, registered=registered, process=process)
    of: Circumstances = around(
        agent(well(counts=COUNTS, registered=registered)),
        *([] if phase else [agent(there, name="a2", log_dirs=where, up=up)]),
        table=new_table(*(each for each in (leader, follower) if each is not None)),
    )
    return only(of, "under_replicated").what.removeprefix("Topic orders is under-replicated: partition 0, in sync 1, not in sync 2")


def test_a_replica_whose_leader_has_lost_its_last_epoch_is_refused_for_ever() -> None:
    refused = why(replica(1, {0: 0}), replica(2, {0: 0, 6: 100}))
    assert refused == (
        ". Broker 2 is refused for ever: its last leader epoch is 6, and its leader knows none after 0, though it leads in 7. A move "
        "between log dirs loses epochs without records (leader-epoch-checkpoint). Restart broker 2, which then forgets epochs without "
        "records, or write a record to the partition"
    )


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        ({0: 0, 7: 100}, {0: 0, 6: 100}),  # the leader has its own epoch: it tells the replica where to cut
        ({0: 0, 6: 100}, {0: 0, 6: 100}),
        ({0: 0}, {0: 0}),
        ({}, {0: 0, 6: 100}),  # nothing is known of the leader's
        ({0: 0}, {}),
    ],
)
def test_nobody_is_refused_whose_epoch_the_leader_can_place(leader: dict[int, int], follower: dict[int, int]) -> None:
    assert why(replica(1, leader), replica(2, follower)) == ". Broker 2 has all that its leader has"


def test_a_replica_that_ends_before_its_leader_begins_has_to_begin_anew() -> None:
    anew = "; its log ends at 50, before the log start 51 of its leader: it will drop it and begin there, and has not yet"
    replicas = replica(1, log_start_offset=51), replica(2, log_end_offset=50)
    assert why(*replicas) == f". Broker 2 is 50 offsets behind{anew}"
    assert why(*replicas, phase=Phase.DOWN) == f". Broker 2 is down{anew}"
    assert why(replica(1, log_start_offset=50), replica(2, log_end_offset=50)) == ". Broker 2 is 50 offsets behind"


THROTTLED = '{"dynamic":{"%s.replication.throttled.rate":"1048576"},"topic":{"%s.replication.throttled.replicas":"%s"}}'


@pytest.mark.parametrize(
    ("side", "listed", "throttles"),
    [
        ("follower", "3:2,0:2", True),
        ("follower", "*", True),
        ("leader", "0:1", True),
        ("follower", "0:1", False),
        ("follower", "", False),
        ("follower", "none", False),
    ],
)
def test_a_replica_behind_is_throttled_where_its_broker_and_its_topic_say_so(side: str, listed: str, throttles: bool) -> None:
    texts = {2 if side == "follower" else 1: THROTTLED % (side, side, listed)}
    said = why(replica(1, configs=texts.get(1, "")), replica(2, configs=texts.get(2, ""), log_end_offset=90))
    assert said.startswith(". Broker 2 is 10 offsets behind")
    assert (f"{side}.replication.throttled.rate of broker {1 if side == 'leader' else 2} throttles it to 1.0 MiB/s" in said) == throttles
    even = why(replica(1, configs=texts.get(1, "")), replica(2, configs=texts.get(2, "")))
    assert even == ". Broker 2 has all that its leader has"


def test_damage_in_the_leader_is_what_no_replica_copies() -> None:
    said = why(replica(1, corrupt_batches=1), replica(2, log_end_offset=90))
    assert said.startswith(". Broker 2 is 10 offsets behind; its leader's log has 1 damaged place, and no replica copies a damaged batch. ")
    assert "damaged" not in why(replica(1, corrupt_batches=1), replica(2))


def test_a_log_dir_that_is_full_or_away_keeps_its_replicas_out() -> None:
    behind = replica(2, log_end_offset=90)
    full = log_dir("/data", 2, free=4096, capacity=FULL, checkpoint_ms=NOW_MS)
    assert why(replica(1), behind, full).startswith(". Log dir /data of broker 2 is full: 4.0 KiB are free. Free space there")
    assert "full" in why(replica(1), behind, log_dir("/data", 2, free=(1 << 20) - 1, capacity=FULL, checkpoint_ms=NOW_MS))
    assert "full" not in why(replica(1), behind, log_dir("/data", 2, free=1 << 20, capacity=FULL, checkpoint_ms=NOW_MS))
    assert "full" not in why(replica(1), behind, log_dir("/other", 2, free=0, checkpoint_ms=NOW_MS))
    for away in ({"registered": False}, {"lock": LockState.FREE}):
        gone = log_dir("/data", 2, free=FULL, checkpoint_ms=NOW_MS, **away)
        assert why(replica(1), behind, gone, lock="up").startswith(". Log dir /data of broker 2 is offline. Mend the disk")
        unseen = why(replica(1), None, gone, lock="up")
        assert unseen.startswith(". No log of it is seen on broker 2; log dir /data of broker 2 is offline. Mend the disk")
    given_up = why(replica(1), behind, log_dir("/data", 2, free=0, registered=False, checkpoint_ms=NOW_MS))
    assert given_up.startswith(". Log dir /data of broker 2 is full: 0 B are free, and the broker has given it up. Free space there")
    blind = log_dir("/data", 2, up=False, problem="Permission denied")
    assert why(replica(1), behind, blind) == '. Log dir /data of broker 2 cannot be read here: "Permission denied"'


def test_a_broker_that_is_not_there_is_the_cause_and_no_other_one_is_said() -> None:
    looping = replica(1, {0: 0}), replica(2, {0: 0, 6: 100})
    for phase, words in ((Phase.DOWN, "is down"), (Phase.STOPPING, "is shut down"), (Phase.STARTING, "is starting")):
        assert why(*looping, phase=phase) == f". Broker 2 {words}"


def test_nothing_is_said_of_what_is_not_seen() -> None:
    looping = replica(1, {0: 0}), replica(2, {0: 0, 6: 100})
    assert why(looping[0], None) == ""
    assert why(*looping, up=False) == ""
