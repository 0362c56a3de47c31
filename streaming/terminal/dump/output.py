"""Runs a dump: from a request to bytes on an output."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, Protocol

from streaming.broker.excerpts.finding import FormatFlaw, Report
from streaming.common.progress_line import ProgressLine
from streaming.errors import SegtailError
from streaming.terminal.dump.dumper import Dumper
from streaming.terminal.dump.request import Format, Request
from streaming.terminal.dump.row_table import RowTable

FOUND, UNUSABLE = 1, 2


class OutputError(SegtailError):
    """The output cannot be written."""


@contextmanager
def _output() -> Iterator[None]:
    """Distinguishes errors of the output from those of the dumped files."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"the output cannot be written: {error.strerror or error}") from error


class _Writer(Protocol):
    def write(self, table: RowTable) -> None: ...

    def close(self) -> None: ...


class _Sink:
    """Opens the writer of a format when the first table comes: while it imports libraries, other processes walk the first segment."""

    def __init__(self, form: Format, out: BinaryIO) -> None:
        self._form = form
        self._out = out
        self._writer: _Writer | None = None

    def write(self, table: RowTable) -> None:
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
        match self._form:
            case Format.ARROW:
                from streaming.terminal.dump.arrow import ArrowSink  # only for this format: pyarrow takes longer to import than many a dump

                return ArrowSink(self._out)
            case Format.PARQUET:
                from streaming.terminal.dump.arrow import ParquetSink

                return ParquetSink(self._out)
            case _:
                from streaming.terminal.dump.lines import LineSink

                return LineSink(self._form, self._out)


def dump(request: Request, out: BinaryIO, report: Report, progress: ProgressLine) -> int:
    """Dump the requested files and return the exit status: 0, or 1 if there were findings, else 2 if a path was not usable.

    Raises:
        UsageError: it is not possible as asked.
        OutputError: the output cannot be written.
        BrokenPipeError: nobody reads the output any more.
    """
    findings = 0

    def count(finding: FormatFlaw) -> None:
        nonlocal findings
        findings += 1
        progress.clear()
        report(finding)

    sink = _Sink(request.format, out)
    dumper = Dumper(request, sink, count, progress, progress.expect)
    dumper.run()
    sink.close()
    progress.clear()
    if findings > dumper.unusable:
        return FOUND
    return UNUSABLE if dumper.unusable else 0
