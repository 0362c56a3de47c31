"""Real segments read line for line as Kafka's own dump tool reads them."""

import re

import numpy as np

from streaming.kafka.formats.entries import inner_messages, read_entry_records, read_message
from streaming.kafka.formats.records import read_batch, read_records
from streaming.kafka.scan.soundness import stored_crcs, wrong_crcs
from tests.formats.dumped import batch_line, columns, files, inner_line, message_line, read, record_line, reported
from tests.tables import each_row

DECODED = re.compile(r" key: \{.*")
SEGMENTS = each_row("name", files(".log"))


def lines_of(data: bytes) -> list[str]:
    view, headers = memoryview(data), columns(data)
    wrong = set(wrong_crcs(np.frombuffer(data, np.uint8), headers).tolist())
    lines = []
    for item, (position, magic) in enumerate(zip(headers.positions.tolist(), headers.magic.tolist(), strict=True)):
        if magic < 2:
            message = read_message(view, position)
            assert message is not None
            assert message.is_valid == (item not in wrong)
            lines.append(message_line(message, position))
            lines += [inner_line(message, inner) for inner in inner_messages(message)]
        else:
            batch = read_batch(view, position)
            assert batch is not None
            lines.append(batch_line(batch, position, item not in wrong))
            lines += [record_line(batch, record) for record in read_records(batch)]
    return lines


@SEGMENTS
def test_batches_and_records_are_what_kafka_prints(name: str) -> None:
    assert lines_of(read(name)) == [DECODED.sub("", line) for line in reported(name)]


@SEGMENTS
def test_records_are_the_same_whatever_the_magic(name: str) -> None:
    data = read(name)
    headers = columns(data)
    offsets = []
    for position in headers.positions.tolist():
        records = read_entry_records(memoryview(data), position)
        assert records is not None
        offsets += [record.offset for record in records]
    assert offsets == [int(line.split()[2]) for line in reported(name) if line.startswith("| ")]


@SEGMENTS
def test_one_wrong_bit_is_found_in_the_batch_that_has_it(name: str) -> None:
    data, headers = read(name), columns(read(name))
    for item in range(0, len(headers), max(1, len(headers) // 8)):
        damaged = bytearray(data)
        damaged[int(headers.positions[item] + headers.size[item]) - 1] ^= 0x10
        assert wrong_crcs(np.frombuffer(damaged, np.uint8), headers).tolist() == [item]


@SEGMENTS
def test_the_crc_that_is_reported_is_the_one_in_the_header(name: str) -> None:
    crcs = [int(match[1]) for line in reported(name) if not line.startswith("|") and (match := re.search(r" crc: (\d+)", line))]
    assert stored_crcs(columns(read(name))).tolist() == crcs
