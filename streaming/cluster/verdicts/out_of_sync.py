"""Why a replica is out of sync, as far as the disks of its broker and of its leader show it, and what brings it back."""

from typing import NamedTuple

import numpy as np

from streaming.broker.protocol.cluster_messages import AffectedPartition
from streaming.broker.protocol.status_messages import LogDirStatus
from streaming.cluster.verdicts.circumstances import Circumstances
from streaming.cluster.view.broker_status import is_given_up
from streaming.cluster.view.exported import Observed
from streaming.cluster.view.table import Replica
from streaming.common.catalog import EPOCHS
from streaming.common.units import format_count, format_name, format_size
from streaming.kafka.formats.metadata_records import Phase
from streaming.rules.config_values import read_configs

FULL_BYTES = 1 << 20
"""Less is free in a log dir that is full: not even a batch of the usual largest size fits."""

_NOT_THERE = {Phase.DOWN: "is down", Phase.STOPPING: "is shut down", Phase.STARTING: "is starting"}


class Cause(NamedTuple):
    """``text``: a clause; ``way_out``: a sentence without a period, "" where it goes on by itself or another problem says what to do."""

    text: str
    way_out: str = ""


def why_out_of_sync(circumstances: Circumstances, partition: AffectedPartition, broker: int) -> Cause | None:
    """Why the replica of a partition on a broker is not in sync, or how far it is behind; None where the disks do not show that."""
    phase = circumstances.phases.get(broker)
    if phase is not None and phase.phase in _NOT_THERE:
        return Cause(f"broker {broker} {_NOT_THERE[phase.phase]}")
    if broker in circumstances.not_current or partition.leader in circumstances.not_current:
        return None
    observed = circumstances.view.observed
    follower, leader = (_item(circumstances, partition, each) for each in (broker, partition.leader))
    cause = _of_log_dir(circumstances, observed, follower, broker)
    if cause is not None or follower is None or leader is None:
        return cause
    ends, number = observed.columns["log_end_offset"], partition.partition
    end, start = int(ends[follower]), int(observed.columns["log_start_offset"][leader])
    behind = int(ends[leader]) - end
    refused = _refused(observed, leader, follower, broker)
    if refused is not None:
        return refused
    if end < start:
        return Cause(
            f"broker {broker} ends at {end}, before the log start {start} of its leader, and has yet to drop its log and begin there"
        )
    if behind <= 0:
        return Cause(f"broker {broker} has all that its leader has")
    throttled = _throttled(observed, follower, "follower", number, broker) or _throttled(
        observed, leader, "leader", number, partition.leader
    )
    lag = f"broker {broker} is {format_count(behind, 'offset')} behind"
    damaged = int(observed.columns["corrupt_batches"][leader])
    if damaged > 0:
        what = f"{lag}; its leader's log has {format_count(damaged, 'damaged place')}, and no replica copies a damaged batch"
        return Cause(what, "`segtail dump --verify` on the leader's directory shows where; a replica that has it whole has to lead")
    return Cause(f"{lag}; {throttled.text}", throttled.way_out) if throttled is not None else Cause(lag)


def _item(circumstances: Circumstances, partition: AffectedPartition, broker: int) -> int | None:
    items = circumstances.items_of(Replica(broker, partition.topic, partition.partition)).tolist()
    return items[0] if len(items) == 1 else None


def _of_log_dir(circumstances: Circumstances, observed: Observed, follower: int | None, broker: int) -> Cause | None:
    dirs = [each for each in circumstances.log_dirs if each.broker == broker]
    away = [each for each in dirs if _is_away(circumstances, each)]
    if follower is None:
        if not away:
            return None
        return Cause(
            f"broker {broker} has no log of it where that can be seen, and its log dir {format_name(away[0].log_dir, 500)} is away"
        )
    number = int(observed.columns["log_dir"][follower])
    its = [each for each in dirs if number >= 0 and each.log_dir == observed.log_dirs[number][1]]
    if not its:
        return None
    name = f"log dir {format_name(its[0].log_dir, 500)} of broker {broker}"
    if its[0] in away:
        return Cause(f"{name} is offline", f"Mend the disk, and start broker {broker} again: it uses a log dir no more after an I/O error")
    if its[0].capacity > 0 and 0 <= its[0].free < FULL_BYTES:
        what = f"{name} is full: {format_size(its[0].free)} are free"
        return Cause(what, f"Free space there (`segtail disk` shows what may go), and start broker {broker} again if it has given it up")
    return None


def _is_away(circumstances: Circumstances, log_dir: LogDirStatus) -> bool:
    return not log_dir.up or log_dir.registered is False or is_given_up(log_dir, circumstances.processes)


def _refused(observed: Observed, leader: int, follower: int, broker: int) -> Cause | None:
    """A leader without the epoch that a fetch names as the last one of the replica answers OFFSET_OUT_OF_RANGE, and as the replica ends
    where it may, it asks the same again (`Partition.readRecords`, `AbstractFetcherThread.fetchOffsetAndTruncate`). An election stores the
    new epoch before a replica can fetch in it, so a leader lacks it only where the file was made anew of batches: by a move between log
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


def _throttled(observed: Observed, item: int, side: str, partition: int, broker: int) -> Cause | None:
    """By the configurations of one side, which Kafka applies to replicas that are not in sync."""
    values = {each.name: each.value for each in read_configs(observed.decided.text(item)).settings}
    listed, rate = values.get(f"{side}.replication.throttled.replicas", ""), values.get(f"{side}.replication.throttled.rate", "")
    if not rate or not {"*", f"{partition}:{broker}"} & set(listed.split(",")):
        return None
    return Cause(
        f"{side}.replication.throttled.rate of broker {broker} throttles it to {format_size(int(rate))}/s",
        f"Raise {side}.replication.throttled.rate, or let kafka-reassign-partitions.sh --verify remove it once its reassignment is over",
    )
