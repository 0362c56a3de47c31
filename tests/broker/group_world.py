"""Topics with all that makes a lag hard to count, and groups of every kind with committed offsets at every kind of place in them."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient  # type: ignore[attr-defined]

from tests.broker.clients import CODECS, create_topic
from tests.broker.dumped_logs import DumpedBatch, dumped, places
from tests.broker.kafka import Kafka
from tests.broker.kafka_tools import TopicPartition
from tests.broker.lab import Ends, Lab, Offset, Record
from tests.limits import SECONDS

SETTINGS: Mapping[str, object] = {"log.initial.task.delay.ms": 500, "log.cleaner.backoff.ms": 300}
"""For brokers that clean up without waiting half a minute first."""

_COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "plain": (1, {}),
    "codecs": (len(CODECS), {}),  # one each
    "mixed": (1, {}),  # all of them
    "ledger": (2, {}),  # transactions, short and long, committed, aborted and open
    "compacted": (2, _COMPACTED),  # without and with transactions
    "cut": (3, {}),  # records deleted: some, in the middle of a batch; all; and then some appended
    "arrived": (1, {"message.timestamp.type": "LogAppendTime"}),
    "old": (3, {"retention.ms": "-1"}),  # message formats 0, 1, and 1 followed by 2, of long ago
    "empty": (1, {}),
}
_OLD_FORMATS = Path(__file__).parent.parent / "data" / "logs" / "old_formats"
_OLD = ("magic0-0", "magic1-0", "magic1to2-0")
_KEYS = 12
SEGMENT_BYTES = 4000


def create(kafka: Kafka, *, older: bool = False) -> None:
    """The topics of a cluster that runs. Before 4.0 small segments were nothing special; old formats are not replicated any more."""
    size = {"segment.bytes" if older else "internal.segment.bytes": str(SEGMENT_BYTES)}
    for topic, (partitions, config) in TOPICS.items():
        create_topic(kafka.bootstrap, topic, partitions, replicas=1 if topic == "old" else -1, config={**size, **config})


def put_old_segments(log_dirs: Iterable[Path]) -> None:
    """Segments of old formats in place of the empty ones of a broker that was stopped: brokers write none any more."""
    for partition, name in enumerate(_OLD):
        (directory,) = [path for log_dir in log_dirs for path in log_dir.glob(f"old-{partition}")]
        for index in [*directory.glob("*.index"), *directory.glob("*.timeindex")]:
            index.unlink()  # the broker makes them anew
        segment = f"{0:020}.log"
        (directory / segment).write_bytes((_OLD_FORMATS / name / segment).read_bytes())


class Filling:
    """Fills the topics by a seed."""

    def __init__(self, kafka: Kafka, lab: Lab, seed: int) -> None:
        self._kafka = kafka
        self._lab = lab
        self._chance = random.Random(seed)

    def batches(self, count: int, *, keys: bool = False) -> list[list[Record]]:
        """Of one to nine records each, with timestamps that do not rise from record to record."""
        chance = self._chance
        made = []
        for _ in range(count):
            size = chance.randint(1, 9)
            made.append([self._record(keys) for _ in range(size)])
        return made

    def _record(self, keys: bool) -> Record:
        chance = self._chance
        key = f"key {chance.randrange(_KEYS)}" if keys else None
        return key, -1 if keys and chance.random() < 0.2 else chance.randint(10, 200), None

    def fill(self) -> None:
        """Everything but the groups."""
        lab, chance = self._lab, self._chance
        for _ in range(3):
            lab.produce("plain", 0, self.batches(8))
            lab.produce("arrived", 0, self.batches(6))
            for partition, codec in enumerate(CODECS):
                lab.produce("codecs", partition, self.batches(8), codec)
                lab.produce("mixed", 0, self.batches(4), codec)
            for partition in range(3):
                lab.produce("cut", partition, self.batches(10))
            lab.produce("old", chance.randrange(3), self.batches(3))
        self.delete({0: lab.ends()["cut", 0].high_watermark // 2, 1: -1, 2: -1})
        lab.produce("cut", 2, self.batches(5))
        for _ in range(2):
            self.compact()
        self.trade("first")

    def trade(self, names: str) -> None:
        """Transactions on the ledger, of which the long ones span segments, and one is left open."""
        lab, chance = self._lab, self._chance
        for name, commit in (("long kept", True), ("long dropped", False), ("left open", None)):
            long = f"{names} {name}"
            lab.ask("begin", transaction=long)
            for partition in range(2):
                lab.produce("ledger", partition, self.batches(2), transaction=long)
            for number in range(12):
                with lab.transaction(f"short {number % 3}", commit=chance.random() < 0.6):
                    for partition in chance.sample(range(2), chance.randint(1, 2)):
                        lab.produce("ledger", partition, self.batches(chance.randint(1, 3)), transaction=f"short {number % 3}")
                lab.produce("ledger", number % 2, self.batches(1))
                if number % 4 == 0:
                    lab.produce("ledger", 0, self.batches(1), transaction=long)
            if commit is not None:
                lab.ask("end", transaction=long, commit=commit)

    def compact(self) -> None:
        """Keys and tombstones, which the cleaner then goes over."""
        lab, chance = self._lab, self._chance
        for number in range(8):
            lab.produce("compacted", 0, self.batches(4, keys=True))
            with lab.transaction("keys", commit=number % 3 != 1):
                lab.produce("compacted", 1, self.batches(chance.randint(2, 5), keys=True), transaction="keys")
        self._kafka.until(self._is_compacted, "the cleaner has gone over all but the active segments")

    def _is_compacted(self) -> bool:
        for partition in range(TOPICS["compacted"][0]):
            logs = [path for log_dir in self._kafka.log_dirs for path in log_dir.glob(f"compacted-{partition}")]
            for directory in logs:
                active = max(int(segment.stem) for segment in directory.glob("*.log"))
                checkpoint = directory.parent / "cleaner-offset-checkpoint"
                if not checkpoint.exists() or f"compacted {partition} {active}" not in checkpoint.read_text().splitlines():
                    return False
        return True

    def delete(self, before: Mapping[int, int]) -> None:
        """Records of partitions of `cut`; -1: all."""
        admin = AdminClient({"bootstrap.servers": self._kafka.bootstrap})
        asked = [Partition("cut", partition, offset) for partition, offset in before.items()]
        for answer in admin.delete_records(asked).values():
            answer.result(SECONDS)
        starts = {partition: told.log_start for (topic, partition), told in self._lab.ends().items() if topic == "cut"}
        self._kafka.until(lambda: self._are_cut(starts), "segments below the log start are deleted")

    def _are_cut(self, starts: Mapping[int, int]) -> bool:
        for partition, start in starts.items():
            for directory in [path for log_dir in self._kafka.log_dirs for path in log_dir.glob(f"cut-{partition}")]:
                if any(base <= start for base in sorted(int(segment.stem) for segment in directory.glob("*.log"))[1:]):
                    return False
        return True

    def offsets(self, ends: Mapping[TopicPartition, Ends], logs: Mapping[TopicPartition, Sequence[DumpedBatch]]) -> Iterator[list[Offset]]:
        """Lists of an offset in each partition, without end: each kind of place first, then any."""
        candidates = {key: self._candidates(logs.get(key, []), told) for key, told in ends.items() if key[0] in TOPICS}
        while True:
            yield [(topic, partition, next(offsets)) for (topic, partition), offsets in candidates.items()]

    def _candidates(self, batches: Sequence[DumpedBatch], told: Ends) -> Iterator[int]:
        start, end, stable = told.log_start, told.high_watermark, told.last_stable
        by_kind: dict[str, list[int]] = {}
        for offset, kind in places(batches, stable).items():
            if offset >= start:
                by_kind.setdefault(kind, []).append(offset)
        edges = {start, max(start - 1, 0), 0, stable, max(stable - 1, 0), end, max(end - 1, 0), end + 3}
        yield from self._chance.sample(sorted(edges), len(edges))
        for _ in range(3):
            yield from [self._chance.choice(offsets) for offsets in by_kind.values()]
        while True:
            yield self._chance.randint(0, end)


MEMBERS = {"by-subscription": "classic", "left-behind": "classic", "by-heartbeat": "consumer"}
"""Groups with members; that of `left-behind` leaves."""


def commit_everywhere(filling: Filling, lab: Lab, directories: Iterable[Path], *, groups: int) -> None:
    """Groups with a committed offset in every partition, whose logs are in these directories: some with a member, most by assign()."""
    offsets = filling.offsets(lab.ends(), dumped(directories))
    for group, kind in MEMBERS.items():
        lab.commit(group, kind, next(offsets))
    lab.ask("leave", group="left-behind")
    _assign(lab, offsets, "assigned", groups)


def commit_by_assign(filling: Filling, lab: Lab, directories: Iterable[Path], *, groups: int) -> None:
    """More groups without members."""
    _assign(lab, filling.offsets(lab.ends(), dumped(directories)), "assigned later", groups)


def _assign(lab: Lab, offsets: Iterator[list[Offset]], name: str, groups: int) -> None:
    for number in range(groups):
        lab.commit(f"{name} {number}", "assign", next(offsets))


def commit_in_transactions(lab: Lab) -> None:
    """Groups on the ledger whose offsets were committed in transactions: kept, dropped, open, and out of order with a plain one."""
    for partition in range(2):
        with lab.transaction("offsets 1", commit=True):
            lab.ask("commit_in_transaction", transaction="offsets 1", group="kept", offsets=[("ledger", partition, 7 + partition)])
        with lab.transaction("offsets 1", commit=False):
            lab.ask("commit_in_transaction", transaction="offsets 1", group="kept", offsets=[("ledger", partition, 20)])
    lab.ask("begin", transaction="offsets 2")
    lab.commit("pending", "assign", [("ledger", 0, 3)])
    lab.ask("commit_in_transaction", transaction="offsets 2", group="pending", offsets=[("ledger", 0, 30), ("ledger", 1, 31)])
    with lab.transaction("offsets 3", commit=True):
        lab.ask("commit_in_transaction", transaction="offsets 3", group="overtaken", offsets=[("ledger", 0, 40), ("ledger", 1, 41)])
        lab.commit("overtaken", "assign", [("ledger", 0, 12)])


SHARED = {"sharing": ("plain", "aaaaaaaxaaraaxra"), "shared": ("mixed", "raaaxarrra")}
"""Share groups: the topic, and what becomes of its first records: a(ccepted), x (rejected), r(eleased)."""


def share(lab: Lab) -> None:
    """Share groups, each with a member."""
    for group, (topic, answers) in SHARED.items():
        lab.ask("share", group=group, topic=topic, answers=answers)
