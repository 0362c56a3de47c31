"""Why a replica is out of sync, as far as the disks of its broker and of its leader show it, and what brings it back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streaming.broker.protocol.cluster_messages import AffectedPartition
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.cluster.verdicts.circumstances import Circumstances, is_full
from streaming.cluster.view.broker_status import is_given_up
from streaming.cluster.view.exported import Observed
from streaming.cluster.view.table import Replica
from streaming.common.catalog import EPOCHS
from streaming.common.units import format_count, format_name, format_size
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.config_values import read_configs

_NOT_THERE = {Phase.DOWN: "is down", Phase.STOPPING: "is shut down", Phase.STARTING: "is starting"}


def why_out_of_sync(circumstances: Circumstances, partition: AffectedPartition, broker: int) -> Cause | None:
    """Why the replica of a partition on a broker is not in sync, or how far it is behind; None where the disks do not show that."""
    observed, phase = circumstances.view.observed, circumstances.phases.get(broker)
    follower, leader = (_item(circumstances, partition, each) for each in (broker, partition.leader))
    if phase is not None and phase.phase in _NOT_THERE:
        anew = "" if follower is None or leader is None else _begins_anew(observed, leader, follower)
        return Cause(f"broker {broker} {_NOT_THERE[phase.phase]}{anew}")
    if broker in circumstances.not_current or partition.leader in circumstances.not_current:
        return None
    cause = _of_log_dir(circumstances, observed, follower, broker)
    if cause is not None or follower is None or leader is None:
        return cause
    return _refused(observed, leader, follower, broker) or _behind(observed, leader, follower, partition, broker)


class Cause(NamedTuple):
    """``text``: a clause; ``way_out``: a sentence without a period, "" where it goes on by itself or another problem says what to do."""

    text: str
    way_out: str = ""


def _item(circumstances: Circumstances, partition: AffectedPartition, broker: int) -> int | None:
    items = circumstances.items_of(Replica(broker, partition.topic, partition.partition)).tolist()
    return items[0] if len(items) == 1 else None


def _begins_anew(observed: Observed, leader: int, follower: int) -> str:
    """What is added where a replica ends before its leader's log begins."""
    end, start = int(observed.columns["log_end_offset"][follower]), int(observed.columns["log_start_offset"][leader])
    if end >= start:
        return ""
    return f"; its log ends at {end}, before the log start {start} of its leader: it will drop it and begin there, and has not yet"


def _of_log_dir(circumstances: Circumstances, observed: Observed, follower: int | None, broker: int) -> Cause | None:
    """What is wrong with the log dir of a replica; with any of its broker, where its log is in none that can be seen."""
    dirs = [each for each in circumstances.log_dirs if each.broker == broker]
    if follower is None:
        causes = [cause for each in dirs if (cause := _of_dir(circumstances, each)) is not None]
        return Cause(f"no log of it is seen on broker {broker}; {causes[0].text}", causes[0].way_out) if causes else None
    number = int(observed.columns["log_dir"][follower])
    its = [each for each in dirs if number >= 0 and each.log_dir == observed.log_dirs[number][1]]
    return _of_dir(circumstances, its[0]) if its else None


def _of_dir(circumstances: Circumstances, log_dir: LogDirStatus) -> Cause | None:
    broker = log_dir.broker
    name = f"log dir {format_name(log_dir.log_dir, 500)} of broker {broker}"
    if not log_dir.up:
        return Cause(f"{name} cannot be read here: {format_name(log_dir.problem, 500)}")
    given_up = log_dir.registered is False or is_given_up(log_dir, circumstances.processes)
    if is_full(log_dir):
        what = f"{name} is full: {format_size(log_dir.free)} are free{', and the broker has given it up' if given_up else ''}"
        return Cause(what, f"Free space there (`segtail disk` shows what may go), and start broker {broker} again if it has given it up")
    if given_up:
        return Cause(f"{name} is offline", f"Mend the disk, and start broker {broker} again: it uses a log dir no more after an I/O error")
    return None


def _refused(observed: Observed, leader: int, follower: int, broker: int) -> Cause | None:
    """A leader without the epoch that a fetch names as the last one of the replica answers OFFSET_OUT_OF_RANGE, and as the replica ends
    where it may, it asks the same again (`Partition.readRecords`, `AbstractFetcherThread.fetchOffsetAndTruncate`). An election stores the
    new epoch before a replica can fetch in it, so a leader lacks it only where the file was rebuilt from batches: by a move between log
    dirs, which copies no epoch without records.
    """
    led, last, known = int(observed.decided.leader_epoch[leader]), _last_epoch(observed, leader), _last_epoch(observed, follower)
    if not 0 <= last < min(led, known):
        return None
    return Cause(
        f"broker {broker} is refused for ever: its last leader epoch is {known}, and its leader knows none after {last}, though it leads "
        f"in {led}. A move between log dirs loses epochs without records (leader-epoch-checkpoint)",
        f"Restart broker {broker}, which then forgets epochs without records, or write a record to the partition",
    )


def _last_epoch(observed: Observed, item: int) -> int:
    """The last epoch in the checkpoint of a log, -1 if it is not known."""
    epochs = np.frombuffer(observed.decided.epochs[item], EPOCHS)
    return int(epochs["epoch"][epochs["start_offset"] >= 0].max(initial=-1))


def _behind(observed: Observed, leader: int, follower: int, partition: AffectedPartition, broker: int) -> Cause:
    """How far a replica is behind, with what keeps it there."""
    offsets = int(observed.columns["log_end_offset"][leader] - observed.columns["log_end_offset"][follower])
    if offsets <= 0:
        return Cause(f"broker {broker} has all that its leader has")
    lag = f"broker {broker} is {format_count(offsets, 'offset')} behind"
    anew, damaged = _begins_anew(observed, leader, follower), int(observed.columns["corrupt_batches"][leader])
    if anew:
        return Cause(f"{lag}{anew}")
    if damaged > 0:
        what = f"{lag}; its leader's log has {format_count(damaged, 'damaged place')}, and no replica copies a damaged batch"
        return Cause(what, "`segtail dump --verify` on the leader's directory shows where; a replica that has it whole has to lead")
    number = partition.partition
    throttled = _throttled(observed, follower, "follower", number, broker)
    throttled = throttled or _throttled(observed, leader, "leader", number, partition.leader)
    return Cause(lag) if throttled is None else Cause(f"{lag}; {throttled.text}", throttled.way_out)


def _throttled(observed: Observed, item: int, side: str, partition: int, broker: int) -> Cause | None:
    """A replica that the configurations of one side throttle: Kafka applies them to replicas that are not in sync."""
    values = {each.name: each.value for each in read_configs(observed.decided.text(item)).settings}
    listed, rate = values.get(f"{side}.replication.throttled.replicas", ""), values.get(f"{side}.replication.throttled.rate", "")
    if not rate or not {"*", f"{partition}:{broker}"} & set(listed.split(",")):
        return None
    return Cause(
        f"{side}.replication.throttled.rate of broker {broker} throttles it to {format_size(int(rate))}/s",
        f"Raise {side}.replication.throttled.rate, or let kafka-reassign-partitions.sh --verify remove it once its reassignment is over",
    )
