"""Logs that brokers left, counted, against the records and markers that Kafka's own dump tool printed of them."""

import re
from collections.abc import Iterator
from pathlib import Path

from streaming.broker.disk.scanning import window
from streaming.broker.disk.segment_files import list_segments
from streaming.broker.ladder.positions import count_log
from tests.formats.dumped import LOGS
from tests.tables import each_row

DIRECTORIES = sorted({str(path.parent.relative_to(LOGS)) for path in LOGS.glob("*/*/*.log")})

_BATCH = re.compile(r"baseOffset: .* producerId: (?P<id>-?\d+) .* isTransactional: (?P<transactional>\w+) isControl: (?P<control>\w+) ")
_RECORD = re.compile(r"\| offset: (?P<offset>\d+) .*?(?:endTxnMarker: (?P<marker>\w+) .*)?$")


def printed(directory: Path) -> Iterator[tuple[int, str]]:
    """Every record of a log as (offset, kind): ``control``, ``aborted`` or ``data``."""
    found: list[tuple[int, str]] = []
    pending: dict[str, list[int]] = {}
    for path in sorted(directory.glob("*.log.txt")):
        producer, transactional, control = "-1", False, False
        for line in path.read_text().splitlines():
            if batch := _BATCH.match(line):
                producer, transactional, control = batch["id"], batch["transactional"] == "true", batch["control"] == "true"
            elif record := _RECORD.match(line):
                if control:
                    ended = pending.pop(producer, []) if record["marker"] else []
                    if record["marker"] == "ABORT":
                        for item in ended:
                            found[item] = found[item][0], "aborted"
                elif transactional:
                    pending.setdefault(producer, []).append(len(found))
                found.append((int(record["offset"]), "control" if control else "data"))
    yield from found


@each_row("name", DIRECTORIES)
def test_each_offset_has_as_many_records_before_it_as_kafka_prints(name: str) -> None:
    directory = LOGS / name
    records = list(printed(directory))
    segments = list_segments(directory)
    counted = count_log(segments, 0, window())
    begin, end = segments[0].base_offset, counted.end_offset
    offsets = range(begin, end + 1)
    found = counted.positions(offsets, end)
    data = aborted = control = taken = 0
    for offset, position in zip(offsets, found, strict=True):
        while taken < len(records) and records[taken][0] < offset:
            kind = records[taken][1]
            data, aborted, control = data + (kind != "control"), aborted + (kind == "aborted"), control + (kind == "control")
            taken += 1
        assert (position.data, position.aborted, position.control) == (data, aborted, control), offset
        following = next((at for at, kind in records[taken:] if kind == "data"), -1)
        assert position.next_offset == following, offset
    assert taken == len(records)
    assert records
