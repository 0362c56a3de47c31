"""The logs that count for their partitions in a reading of log dirs: where they are, their ends, their open transactions."""

from dataclasses import dataclass
from pathlib import Path

from streaming.kafka.metadata_brokers import BrokerState
from streaming.log_key import LogKey
from streaming.metrics.open_list import Late
from streaming.metrics.table import Snapshot
from streaming.metrics.view import View
from streaming.offline.doubts import ragged_bytes
from streaming.offline.partition_lag import Ends
from streaming.offline.single_reading import SingleReading

TopicPartition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedLog:
    """``item`` is its index in `streaming.metrics.exported.Observed`. ``ends`` is None if they are not known: no current replica is here.

    ``transactions`` are the open ones, the first in the log first. ``broker``: the one that has it, None if its registration is not known.
    """

    item: int
    key: LogKey
    path: Path
    ends: Ends | None
    transactions: tuple[Late, ...]
    broker: BrokerState | None


def observed_logs(reading: SingleReading, seen: View, snapshot: Snapshot) -> dict[TopicPartition, ObservedLog]:
    """The log of each partition that was read: the leader's, if it is known and here."""
    observed, logs = seen.observed, seen.logs
    late: dict[TopicPartition, list[Late]] = {}
    for each in logs.late:
        name = snapshot.topic_names[int(logs["topic"][each.log])]
        late.setdefault((name, int(logs["partition"][each.log])), []).append(each)
    tails = {tail.cursor.log: tail for tail in reading.agent.watcher.tails()}
    found = {}
    for item in observed.roles.speaks.nonzero()[0].tolist():
        columns = {
            name: int(observed.columns[name][item]) for name in ("broker", "partition", "slot", "log_start_offset", "log_end_offset")
        }
        key = LogKey(columns["broker"], observed.names[item], columns["partition"], snapshot.topic_ids[columns["slot"]])
        tail = tails.get(key)
        if tail is None:
            continue
        high_watermark, stable = (int(observed.replica_offsets[name][item]) for name in ("high_watermark", "last_stable_offset"))
        known = high_watermark >= 0 and stable >= 0 and int(observed.read_ms[item]) >= 0
        ends = Ends(
            log_start=columns["log_start_offset"],
            log_end=columns["log_end_offset"],
            high_watermark=high_watermark,
            last_stable=stable,
            damaged=bool(tail.cursor.stopped or ragged_bytes(tail, reading.agent.now_ms)),
        )
        transactions = sorted(late.get((key.topic, key.partition), ()), key=lambda each: each.first_offset)
        found[key.topic, key.partition] = ObservedLog(
            item=item,
            key=key,
            path=tail.partition.path,
            ends=ends if known else None,
            transactions=tuple(transactions),
            broker=reading.agent.cluster.broker(key.broker),
        )
    return found
