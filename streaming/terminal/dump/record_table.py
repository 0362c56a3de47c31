"""The records of batches as tables, one row for each record. Batches are opened record by record, so that memory holds few rows."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from streaming.broker.disk.kafka_files import FileType, KafkaFile
from streaming.broker.excerpts.finding import FormatFlaw, Report
from streaming.broker.excerpts.segment_walk import Window
from streaming.errors import FormatError
from streaming.kafka.formats.entries import read_entry_records
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.kafka.formats.records import MAX_RECORDS_BYTES, Header, Record
from streaming.kafka.scan.headers import Batches
from streaming.terminal.dump.decode import Decoded, control_type, decode_control, decoder_for, is_opened, text
from streaming.terminal.dump.request import Filters, Payload
from streaming.terminal.dump.row_table import Cell, Cells, Column, Numbers, RowTable

_ROWS = 4096
_NONE = -1


class RecordTables:
    """Makes the tables of one file's records.

    ``raw``: keys and values are the bytes in the log, if neither the topic nor ``payload`` defines how to show them.
    """

    def __init__(self, file: KafkaFile, payload: Payload, filters: Filters, report: Report, *, raw: bool) -> None:
        self._file = file
        self._filters = filters
        self._report = report
        topic = (
            METADATA_TOPIC if file.type is FileType.METADATA_SNAPSHOT else file.topic
        )  # bootstrap.checkpoint is in no partition's directory
        self._decode = decoder_for(topic, payload)
        self._raw = raw and payload is Payload.NATURAL and not is_opened(topic)
        self._payload = payload
        self._show_header: Callable[[bytes], Cell] | None = bytes if self._raw else bytes.hex if payload is Payload.HEX else text
        if payload is Payload.NONE:
            self._show_header = None

    def tables(self, window: Window, batches: Batches) -> Iterator[RowTable]:
        """The records of some batches of a window. The rest of a batch that cannot be opened is reported and skipped."""
        view = window.buffer.data
        rows: list[tuple[Record, str | None, Decoded]] = []
        control = batches.control.tolist()
        for item, position in enumerate(batches.positions.tolist()):
            at = window.position + position
            entry = view[position : position + int(batches.size[item])]
            try:
                for record in read_entry_records(entry, limit=MAX_RECORDS_BYTES, most=MAX_RECORDS_BYTES) or ():
                    if self._filters.wants(record):
                        rows.append(self._row(record, control[item], at))
                    if len(rows) >= _ROWS:
                        yield self._table(rows)
                        rows = []
            except FormatError as error:
                self._found(at, str(error))
        if rows:
            yield self._table(rows)

    def _row(self, record: Record, control: bool, position: int) -> tuple[Record, str | None, Decoded]:
        try:
            if control:
                return record, control_type(record), decode_control(record) if self._payload is not Payload.NONE else (None, None)
            return record, None, (record.key, record.value) if self._raw else self._decode(record)
        except FormatError as error:
            self._found(position, f"record at offset {record.offset}: {error}")
            return record, None, (_hex(record.key), _hex(record.value))

    def _found(self, position: int, what: str) -> None:
        self._report(FormatFlaw(self._file.path, position, f"expected records as Kafka writes them: {what}"))

    def _table(self, rows: Sequence[tuple[Record, str | None, Decoded]]) -> RowTable:
        numbers = np.array([(row[0].offset, row[0].timestamp, row[0].sequence, _size(row[0].key), _size(row[0].value)) for row in rows])
        named = (Numbers(name, numbers[:, at]) for at, name in enumerate(("offset", "timestamp", "sequence", "key_size", "value_size")))
        columns: list[Column] = [*named, Cells("control", [control for _, control, _ in rows])]
        if self._payload is not Payload.NONE:
            columns += [
                Cells("key", [decoded[0] for _, _, decoded in rows], raw=True),
                Cells("value", [decoded[1] for _, _, decoded in rows], raw=True),
            ]
        headers = [[_header(header, self._show_header) for header in record.headers] for record, _, _ in rows]
        return RowTable("record", str(self._file.path), len(rows), (*columns, Cells("headers", headers)))


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def _size(data: bytes | None) -> int:
    return _NONE if data is None else len(data)


def _header(header: Header, show: Callable[[bytes], Cell] | None) -> dict[str, Cell]:
    if show is None:
        return {"key": text(header.name)}
    return {"key": text(header.name), "value": None if header.value is None else show(header.value)}
