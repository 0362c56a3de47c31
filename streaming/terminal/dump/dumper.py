"""The dump: from a request to tables, one file after the other, and to bytes on an output. An error in one file never stops the others."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from streaming.broker.disk.kafka_files import BATCHES, FileType, KafkaFile, find_files, read_file
from streaming.broker.disk.opening import CHECKPOINT_BYTES, read_small
from streaming.broker.disk.segment_walk import WINDOW_BYTES, FormatFlaw, Report, SegmentReader, Ticks, Window, report_flaws
from streaming.common.progress_line import ProgressLine
from streaming.common.units import format_be, format_count, format_size
from streaming.errors import FormatError, SegtailError, UsageError
from streaming.kafka.formats.checkpoint_files import parse_offset_checkpoint
from streaming.kafka.formats.layout import CURRENT_MAGIC, DELETE_HORIZON_BIT
from streaming.kafka.formats.names import CLEANER_CHECKPOINT, INTERNAL_TOPICS, FileKind, parse_metadata_snapshot
from streaming.kafka.formats.segment_indexes import read_time_entries
from streaming.kafka.scan.headers import Batches
from streaming.kafka.scan.soundness import stored_crcs
from streaming.terminal.dump.batch_table import Summary, batch_table
from streaming.terminal.dump.request import Filters, Format, Request
from streaming.terminal.dump.row_table import RowTable

if TYPE_CHECKING:
    from streaming.terminal.dump.small_files import Skeleton


log = logging.getLogger(__name__)

_INDEX_KINDS = {
    FileKind.INDEX: FileType.OFFSET_INDEX,
    FileKind.TIMEINDEX: FileType.TIME_INDEX,
    FileKind.TXNINDEX: FileType.TRANSACTION_INDEX,
}

_Show = Callable[[Window, Batches, "NDArray[np.bool_] | None"], None]

_WHAT = {
    FileType.SEGMENT: "batches",
    FileType.METADATA_SNAPSHOT: "a metadata snapshot",
    FileType.OFFSET_INDEX: "an offset index",
    FileType.TIME_INDEX: "a time index",
    FileType.TRANSACTION_INDEX: "an index of aborted transactions",
    FileType.PRODUCER_SNAPSHOT: "a producer snapshot of version 1 with a right CRC",
    FileType.LEADER_EPOCHS: "a checkpoint of leader epochs",
    FileType.OFFSET_CHECKPOINT: "a checkpoint of offsets",
    FileType.PARTITION_METADATA: "the id of a topic",
    FileType.META_PROPERTIES: "the identity of a log dir",
    FileType.QUORUM_STATE: "a quorum state",
    FileType.BROKER_LOCK: "nothing",
    FileType.CLEAN_SHUTDOWN: "the epoch of a broker, or nothing",
}

FOUND, UNUSABLE = 1, 2

MOST_ALIKE = 100
"""So many findings that differ in numbers alone are reported one by one; of the others the last and how many."""

_NUMBER = re.compile(r"\d+")


def dump(request: Request, out: BinaryIO, report: Report, progress: ProgressLine, conclude: Callable[[str], None] = lambda _: None) -> int:
    """Dump the requested files and return the exit status: 0, or 1 if there were findings, else 2 if a path was not usable.

    Args:
        conclude: called with what `Request.verify` found, in a sentence without a period.

    Raises:
        UsageError: it is not possible as asked.
        OutputError: the output cannot be written.
        BrokenPipeError: no process reads the output any more.
    """
    findings, alike, last = list[Path](), Counter[str](), dict[str, FormatFlaw]()

    def count(finding: FormatFlaw) -> None:
        findings.append(finding.path)
        kind = _NUMBER.sub("N", finding.what)
        alike[kind] += 1
        last[kind] = finding
        if alike[kind] <= MOST_ALIKE:
            progress.clear()
            report(finding)

    sink = _Sink(request, out)
    dumper = Dumper(request, sink, count, progress, progress.expect)
    dumper.run()
    sink.close()
    progress.clear()
    for kind, number in alike.items():
        if number > MOST_ALIKE:
            report(
                replace(last[kind], what=f"{last[kind].what}; it is the last of {number - MOST_ALIKE:,} more that differ in numbers alone")
            )
    if request.verify:
        with _output():
            conclude(_conclusion(dumper, findings))
    if len(findings) > dumper.unusable:
        return FOUND
    return UNUSABLE if dumper.unusable else 0


class _Sink:
    """Opens the writer of a format when the first table comes: while it imports libraries, other processes walk the first segment."""

    def __init__(self, request: Request, out: BinaryIO) -> None:
        self._request = request
        self._out = out
        self._writer: _Writer | None = None

    def write(self, table: RowTable) -> None:
        if not self._request.rows:
            return
        with _output():
            if self._writer is None:
                self._writer = self._open()
            self._writer.write(table)

    def close(self) -> None:
        with _output():
            if self._writer is not None:
                self._writer.close()
            self._out.flush()

    def _open(self) -> _Writer:
        match form := self._request.format:
            case Format.ARROW:
                from streaming.terminal.dump.arrow import ArrowSink  # only for this format: pyarrow takes longer to import than many a dump

                return ArrowSink(self._out)
            case Format.PARQUET:
                from streaming.terminal.dump.arrow import ParquetSink

                return ParquetSink(self._out)
            case _:
                from streaming.terminal.dump.lines import LineSink

                return LineSink(form, self._out)


class _Writer(Protocol):
    def write(self, table: RowTable) -> None: ...

    def close(self) -> None: ...


@contextmanager
def _output() -> Iterator[None]:
    """Distinguishes errors of the output from those of the dumped files."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error


class OutputError(SegtailError):
    """The output cannot be written.

    Runs a dump: from a request to bytes on an output.
    """


class Dumper:
    """Dumps files into a sink. ``unusable`` counts the paths without anything to dump.

    ``files``: those that were read. With `Request.verify`, ``batches`` counts the whole ones, and ``size`` their bytes.

    Args:
        expects: called with the number of bytes that will be read, unless a filter may leave some out.
    """

    def __init__(self, request: Request, sink: Sink, report: Report, ticks: Ticks, expects: Callable[[int], None] = lambda _: None) -> None:
        self.unusable = self.batches = self.size = 0
        self.files = set[Path]()
        self._request = request
        self._sink = sink
        self._report = report
        self._ticks = ticks
        self._expects = expects
        self._buffer = np.empty(WINDOW_BYTES, np.uint8)
        self._continuity: Continuity | None = None

    def run(self) -> None:
        """Dump everything that is requested.

        Raises:
            UsageError: files of several kinds are requested in a format for one kind.
        """
        named = list(dict.fromkeys(file for path in self._request.paths for file in self._found(path)))
        chosen = [file for file in named if self._is_dumped(file)]
        self._one_kind(chosen)
        if self._request.filters == Filters():
            self._expects(sum(_size(file.path) for file in chosen if file.type in BATCHES))
        for directory, files in groupby(chosen, key=lambda file: file.path.parent):
            self._dump_directory(directory, sorted(files, key=lambda file: (file.type is not FileType.SEGMENT, file.base_offset)))
        if self._request.verify:
            self._check_small([file for file in named if file not in chosen])

    def _check_small(self, files: Iterable[KafkaFile]) -> None:
        from streaming.terminal.dump.small_files import is_small, small_table

        for file in filter(is_small, files):
            if file.type is not FileType.TRANSACTION_INDEX:  # it is checked with its segment
                self._guarded(file, partial(small_table, file))

    def _found(self, path: Path) -> Sequence[KafkaFile]:
        try:
            return find_files(path)
        except UsageError as error:
            self.unusable += 1
            self._report(FormatFlaw(path, None, str(error).removeprefix(f"{path}: ")))
        except OSError as error:
            self._unreadable(path, error)
        return ()

    def _is_dumped(self, file: KafkaFile) -> bool:
        """Files with batches are always dumped, other files if they are named and not only found in a directory."""
        return file.type in BATCHES or (file.path in self._request.paths and not self._request.summary)

    def _one_kind(self, chosen: Iterable[KafkaFile]) -> None:
        kinds = {"batches" if file.type in BATCHES else file.type.value for file in chosen}
        if len(kinds) > 1 and self._request.format not in (Format.TEXT, Format.JSON):
            raise UsageError(
                f"--format {self._request.format} holds rows of one kind, and these files hold several ({', '.join(sorted(kinds))}): "
                "dump them one kind at a time, or as text or json"
            )

    def _dump_directory(self, directory: Path, files: list[KafkaFile]) -> None:
        logs = [file for file in files if file.type in BATCHES]
        self._continuity = Continuity(files[0], self._report, gaps=self._request.verify)
        summary = Summary() if self._request.summary else None
        for at, file in enumerate(files):
            following = files[at + 1].base_offset if at + 1 < len(files) and files[at + 1].type is FileType.SEGMENT else None
            if file.type is FileType.SEGMENT and self._is_outside(file, following):
                continue
            self._guarded(file, partial(self._dump, file, summary))
        self._continuity.end()
        if summary is not None and logs:
            whose = logs[0].partition
            path = directory if len(logs) > 1 else logs[0].path
            self._sink.write(summary.table(str(path), logs[0].topic, None if whose is None else whose.partition))

    def _is_outside(self, file: KafkaFile, following: int | None) -> bool:
        """Whether a segment certainly has no wanted batch, by the names of the files only."""
        filters = self._request.filters
        below = filters.from_offset is not None and following is not None and following <= filters.from_offset
        above = filters.to_offset is not None and file.base_offset > filters.to_offset
        return (below or above) and not self._request.verify

    def _guarded(self, file: KafkaFile, work: Callable[[], object]) -> None:
        self.files.add(file.path)
        try:
            work()
        except BrokenPipeError:
            raise
        except OSError as error:
            self._unreadable(file.path, error)
        except FormatError as error:
            self._report(FormatFlaw(file.path, error.position, f"expected {_WHAT[file.type]}: {error.what}"))

    def _unreadable(self, path: Path, error: OSError) -> None:
        hint = ": expected a file that this user may read; metadata snapshots have mode 0400" if isinstance(error, PermissionError) else ""
        self._report(FormatFlaw(path, None, f"cannot be read ({error.strerror}){hint}"))

    def _dump(self, file: KafkaFile, summary: Summary | None) -> None:
        if file.type in BATCHES:
            request = self._request
            with SegmentReader(file, self._report, self._buffer, whole=request.records, crcs=request.verify, ticks=self._ticks) as reader:
                if request.format is Format.TEXT and summary is None:  # for an empty segment, at least its name is shown
                    self._sink.write(RowTable("record" if request.records else "batch", str(file.path), 0, ()))
                self._verify_and_dump(reader, summary) if request.verify else self._dump_windows(reader, summary, lambda _: None)
                if summary is not None:
                    summary.end_of(reader.tail)
        elif file.type in _INDEX_KINDS.values():
            self._dump_index(file)
        else:
            from streaming.terminal.dump.small_files import small_table

            self._sink.write(small_table(file))

    def _dump_index(self, file: KafkaFile) -> None:
        from streaming.terminal.dump.small_files import SPARSE, check_index, index_table, small_table

        sparse = file.type in SPARSE
        skeleton = self._skeleton(file) if sparse or self._request.verify else None
        self._sink.write(index_table(file, skeleton) if sparse else small_table(file))
        if self._request.verify and skeleton is not None:
            check_index(file, skeleton, self._report)

    def _skeleton(self, file: KafkaFile) -> Skeleton | None:
        """The segment that an index belongs to; None if it is gone."""
        from streaming.terminal.dump.small_files import Skeleton

        log = file.beside(FileKind.LOG)
        if not log.exists():
            return None
        skeleton = Skeleton()
        segment = KafkaFile(log, FileType.SEGMENT, file.partition, file.base_offset, file.live, file.active)
        with SegmentReader(segment, lambda _: None, self._buffer, whole=False, crcs=False, ticks=self._ticks) as reader:
            for window in reader.windows(0):
                skeleton.add(window)
        return skeleton

    def _verify_and_dump(self, reader: SegmentReader, summary: Summary | None) -> None:
        from streaming.terminal.dump.small_files import Skeleton, check_index

        skeleton, segment = Skeleton(), reader.file
        self._dump_windows(reader, summary, skeleton.add)
        for kind, file_type in _INDEX_KINDS.items() if segment.type is FileType.SEGMENT else ():
            path = segment.beside(kind)
            if path.exists():
                file = KafkaFile(path, file_type, segment.partition, segment.base_offset, segment.live, segment.active)
                self._guarded(file, partial(check_index, file, skeleton, self._report))

    def _dump_windows(self, reader: SegmentReader, summary: Summary | None, also: Callable[[Window], None]) -> None:
        show = self._shower(reader, summary)
        last = None
        for window in self._windows(reader):
            also(window)
            last = window.batches.take(slice(-1, None))
            valid = self._valid(reader.file, window) if self._request.verify else None
            if valid is not None:
                self.batches += int(valid.sum())
                self.size += int(window.batches.size[valid].sum())
            batches, keep = window.batches, self._request.filters.keep(window.batches)
            if keep is not None and not keep.all():
                batches, valid = batches.take(keep), None if valid is None else valid[keep]
            if len(batches):
                show(window, batches, valid)
        if parse_metadata_snapshot(reader.file.path.name) is not None and (last is None or not last.control.all()):
            self._report(FormatFlaw(reader.file.path, reader.size(), "expected a metadata snapshot that ends with its footer, found none"))

    def _shower(self, reader: SegmentReader, summary: Summary | None) -> _Show:
        """Return the function that shows the wanted batches."""
        request, path = self._request, str(reader.file.path)
        if not request.rows:
            return lambda *_: None
        if summary is not None:
            return lambda window, batches, _: summary.add(window, batches, reader.read)
        if not request.records:
            return lambda window, batches, valid: self._sink.write(batch_table(path, window, batches, valid))
        from streaming.terminal.dump.record_table import RecordTables

        raw = request.format in (Format.ARROW, Format.PARQUET)
        records = RecordTables(reader.file, request.payload, request.filters, self._report, raw=raw)

        def show(window: Window, batches: Batches, _valid: NDArray[np.bool_] | None) -> None:
            for table in records.tables(window, batches):
                self._sink.write(table)

        return show

    def _valid(self, file: KafkaFile, window: Window) -> NDArray[np.bool_]:
        """Which batches have the CRC of their header; the others are reported."""
        batches = window.batches
        valid = np.ones(len(batches), bool)
        valid[window.wrong] = False
        stored = stored_crcs(batches) if len(window.wrong) else ()
        for item in window.wrong.tolist():
            position = window.position + int(batches.positions[item])
            self._report(FormatFlaw(file.path, position, f"expected bytes with the CRC that the batch names, {stored[item]}, found others"))
        return valid

    def _windows(self, reader: SegmentReader) -> Iterator[Window]:
        """The requested windows: all of them if they have to be verified."""
        assert self._continuity is not None
        filters, verify = self._request.filters, self._request.verify
        start = 0 if verify else start_position(reader, filters)
        self._continuity.begin(reader.file, at_start=start == 0)
        for window in reader.windows(start):
            self._continuity.add(window)
            if filters.to_offset is not None and window.batches.base_offset[0] > filters.to_offset and not verify:
                return
            yield window


class Sink(Protocol):
    """The destination of tables."""

    def write(self, table: RowTable) -> None: ...


class Continuity:
    """Checks the segments of one directory in order. ``gaps``: report missing offsets, too."""

    def __init__(self, first: KafkaFile, report: Report, *, gaps: bool) -> None:
        self._report = report
        self._next_offset: int | None = None
        self._file = first
        self._gaps: list[FormatFlaw] = []
        self._finds_gaps = gaps
        self._compacted = gaps and _is_compacted(first)

    def begin(self, file: KafkaFile, *, at_start: bool) -> None:
        """Begin the next file, read from its start or from a later position."""
        self._file = file
        if file.type is not FileType.SEGMENT or not at_start:
            self._next_offset = 0 if at_start else None
        elif self._next_offset is None or self._next_offset < file.base_offset or not file.live:
            if self._next_offset is not None and file.live:
                self._missing(0, self._next_offset, file.base_offset)
            self._next_offset = file.base_offset

    def add(self, window: Window) -> None:
        """Check the next window of the file."""
        batches = window.batches
        first = int(batches.base_offset[0]) if self._next_offset is None else self._next_offset
        if self._finds_gaps and not self._compacted:
            # fewer records than offsets, or a delete horizon: only compaction leaves these
            current = batches.magic == CURRENT_MAGIC
            fewer = batches.records < batches.last_offset - batches.base_offset + 1
            self._compacted = bool((current & (fewer | ((batches.attributes & DELETE_HORIZON_BIT) != 0))).any())
            following = np.append(first, batches.last_offset[:-1] + 1)
            for item in np.flatnonzero(batches.base_offset > following).tolist():
                position = window.position + int(batches.positions[item])
                self._missing(position, int(following[item]), int(batches.base_offset[item]))
        path = self._file.path
        self._next_offset = report_flaws(window, first, lambda position, what: self._report(FormatFlaw(path, position, what)))

    def end(self) -> None:
        """The log has been read: report its gaps."""
        if not self._compacted:
            for gap in self._gaps:
                self._report(gap)

    def _missing(self, position: int, expected: int, offset: int) -> None:
        if self._finds_gaps and self._file.type is FileType.SEGMENT and not self._compacted:
            what = f"expected offset {expected}, found {offset}: offsets are missing, which is right in a compacted topic alone"
            self._gaps.append(FormatFlaw(self._file.path, position, what))


def _is_compacted(file: KafkaFile) -> bool:
    """Whether the log dir's list contains this log as compacted; the coordinators' topics always count as compacted."""
    if file.partition is None:
        return False
    if file.topic in INTERNAL_TOPICS:
        return True
    path = file.path.absolute().parent.parent / CLEANER_CHECKPOINT
    try:
        entries = parse_offset_checkpoint(read_small(path, CHECKPOINT_BYTES))
    except FileNotFoundError:  # a directory that was copied from its log dir
        return False
    except (FormatError, OSError) as error:
        log.warning("checkpoint cannot be read", extra={"path": str(path), "error": str(error)})
        return False
    return any((entry.topic, entry.partition) == (file.topic, file.partition.partition) for entry in entries)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # to open it fails as well, and is reported then


def start_position(reader: SegmentReader, filters: Filters) -> int:
    """The position of a batch such that no batch before it is wanted."""
    offset = filters.from_offset
    if filters.from_time is not None:
        later = _offset_of(reader, filters.from_time)
        offset = later if offset is None else max(offset, later)
    return 0 if offset is None else reader.proven_start(offset)


def _offset_of(reader: SegmentReader, time: int) -> int:
    """An offset such that no batch below it has a timestamp of ``time`` or later; at least the segment's base offset.

    An entry (t, o) of the time index means: no batch up to the one with offset o has a timestamp after t, and that batch has exactly t. If
    it really has, the entry is not from a log that was truncated since.
    """
    base_offset = reader.file.base_offset
    try:
        entries = read_time_entries(read_file(reader.file, FileKind.TIMEINDEX))
    except (FormatError, OSError):  # a new segment has none: everything works without it, but slower
        return base_offset
    before = int(entries.timestamps.searchsorted(time)) - 1
    if before < 0:
        return base_offset
    offset, timestamp = base_offset + int(entries.offsets[before]), int(entries.timestamps[before])
    for window in reader.windows(reader.proven_start(offset)):
        item = int(window.batches.last_offset.searchsorted(offset))
        if item < len(window.batches):
            holds = window.batches.base_offset[item] <= offset and window.batches.max_timestamp[item] == timestamp
            return int(window.batches.last_offset[item]) + 1 if holds else base_offset
    return base_offset


def _conclusion(dumper: Dumper, findings: Sequence[Path]) -> str:
    """What is whole, and how much is not; ``findings``: the file of each."""
    whole = f"{dumper.batches:,} {'batch' if dumper.batches == 1 else 'batches'} with {format_size(dumper.size)}"
    files = format_count(len({*dumper.files, *findings}), "file")
    if not findings:
        return f"{files}: everything is whole, {whole}"
    return f"{format_count(len(findings), 'finding')} in {len({*findings}):,} of {files}; {whole} {format_be(dumper.batches)} whole"
