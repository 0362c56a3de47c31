"""The batches of partitions as kafka-dump-log prints them, with the offset of each record, and what readers get by plain arithmetic."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.broker.kafka_tools import TopicPartition, run_tool


@dataclass(slots=True)
class DumpedBatch:
    """One batch; of the old formats a message or a wrapper. ``records`` are those that are left of it: (offset, timestamp)."""

    base: int
    last: int
    size: int
    producer_id: int = -1
    transactional: bool = False
    control: bool = False
    aborts: bool = False
    records: list[tuple[int, int]] = field(default_factory=list)


def dumped(directories: Iterable[Path]) -> dict[TopicPartition, list[DumpedBatch]]:
    """Of the partitions in these directories, in the order of their offsets."""
    return parsed(printed(directories))


def printed(directories: Iterable[Path]) -> str:
    """What kafka-dump-log says of all their segments."""
    segments = sorted(segment for path in directories for segment in path.glob("*.log"))
    return run_tool("dump-log", "--deep-iteration", "--files", ",".join(map(str, segments)))


def parsed(text: str) -> dict[TopicPartition, list[DumpedBatch]]:
    """What it said, by partition."""
    found: dict[TopicPartition, list[DumpedBatch]] = {}
    batches: list[DumpedBatch] = []
    for line in text.splitlines():
        if line.startswith("Dumping "):
            topic, _, number = Path(line.removeprefix("Dumping ")).parent.name.rpartition("-")
            batches = found.setdefault((topic, int(number)), [])
        elif header := _HEADER.match(line):
            flags = [header[name] == "true" for name in ("transactional", "control")]
            batches.append(DumpedBatch(int(header["base"]), int(header["last"]), int(header["size"]), int(header["id"]), *flags))
        elif old := _OLD_HEADER.match(line):
            batches.append(DumpedBatch(-1, int(old["last"]), int(old["size"])))  # where a wrapper begins stands in it
        elif record := _RECORD.match(line):
            offset = int(record["offset"])
            batches[-1].records.append((offset, int(record["time"] or -1)))
            batches[-1].base = offset if batches[-1].base < 0 else batches[-1].base
            batches[-1].aborts |= " endTxnMarker: ABORT " in line
        else:
            assert line.startswith("Log starting offset: "), line
    return found


_HEADER = re.compile(
    r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: .* producerId: (?P<id>-?\d+) .*"
    r" isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+) .* size: (?P<size>\d+) .* isvalid: true"
)
_OLD_HEADER = re.compile(r"offset: (?P<last>\d+) position: .* size: (?P<size>\d+) magic: [01] .* isvalid: true")
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) (?:\w+: (?P<time>-?\d+) )?")


def aborted_ranges(batches: Iterable[DumpedBatch]) -> list[tuple[int, int, int]]:
    """(producer id, first offset, offset of the ABORT marker) of each aborted transaction."""
    opened: dict[int, int] = {}
    found = []
    for batch in batches:
        if batch.control:
            first = opened.pop(batch.producer_id, None)
            if batch.aborts and first is not None:
                found.append((batch.producer_id, first, batch.base))
        elif batch.transactional:
            opened.setdefault(batch.producer_id, batch.base)
    return found


def is_aborted(batch: DumpedBatch, aborted: Iterable[tuple[int, int, int]]) -> bool:
    """Whether it is data of one of these transactions."""
    if batch.control or not batch.transactional:
        return False
    return any(producer == batch.producer_id and first <= batch.base < marker for producer, first, marker in aborted)


def readable(batches: Iterable[DumpedBatch], *, committed: bool) -> list[tuple[int, int]]:
    """(offset, timestamp) of each record that a consumer gets, were there no end."""
    batches = list(batches)
    aborted = aborted_ranges(batches) if committed else []
    return [record for batch in batches if not batch.control and not is_aborted(batch, aborted) for record in batch.records]


def places(batches: Iterable[DumpedBatch], last_stable: int) -> Mapping[int, str]:
    """What lies at an offset, for each up to the end of the log; offsets of which nothing is left are a gap."""
    batches = list(batches)
    aborted = aborted_ranges(batches)
    found = {}
    end = batches[-1].last + 1 if batches else 0
    for batch in batches:
        kind = "marker" if batch.control else "aborted" if is_aborted(batch, aborted) else "held" if batch.base >= last_stable else "inside"
        for offset, _ in batch.records:
            found[offset] = "first" if kind == "inside" and offset == batch.base else kind
    return {offset: found.get(offset, "gap") for offset in range(end)} | {end: "end"}
