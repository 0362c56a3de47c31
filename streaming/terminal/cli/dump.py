"""``segtail dump``: show the content of Kafka's files."""

import gc
import os
import sys
from pathlib import Path

import click

from streaming.errors import UsageError
from streaming.terminal.cli.output_options import with_json
from streaming.terminal.cli.values import Moment

FORMATS = ("text", "json", "csv", "arrow", "parquet")
BINARY = ("arrow", "parquet")
PAYLOADS = ("text", "json", "hex")


@click.command("dump")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(path_type=Path))
@click.option("--records", is_flag=True, help="Show records, one a line, instead of batches.")
@click.option(
    "--payload", type=click.Choice(PAYLOADS), help="Keys and values as text, JSON or hex.  [default: by the topic's name, or text]"
)
@click.option("--no-payload", is_flag=True, help="Omit keys, values and the values of headers.")
@click.option("--verify", is_flag=True, help="Check CRCs, indexes and the sequence of offsets, and show what is found.")
@click.option("--summary", is_flag=True, help="Show totals of each partition's batches, instead of batches.")
@click.option("--from-offset", type=click.IntRange(min=0), metavar="N", help="From this offset on.")
@click.option("--to-offset", type=click.IntRange(min=0), metavar="N", help="Up to this offset, which is the last one shown.")
@click.option("--from-time", type=Moment(), metavar="TIME", help=f"Timestamps from this time on: {Moment.accepts}.")
@click.option("--producer-id", type=click.IntRange(min=0), metavar="ID", help="Only batches of this producer.")
@click.option("--transactional", is_flag=True, help="Only transactional batches, markers included.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Form of the output.  [default: text]")
@with_json
def command(
    paths: tuple[Path, ...],
    records: bool,
    payload: str | None,
    no_payload: bool,
    verify: bool,
    summary: bool,
    from_offset: int | None,
    to_offset: int | None,
    from_time: int | None,
    producer_id: int | None,
    transactional: bool,
    form: str | None,
) -> int:
    """Show the content of Kafka's files: segments, indexes, snapshots, checkpoints, partition directories, log dirs.

    For a directory, it shows the batches of all segments and metadata snapshots. Other files are shown if they are named. If bytes do not
    have Kafka's format, file, position and the expected content go to stderr, and the dump continues after them. With --verify rows are
    shown only if --records, --summary, --format or a filter asks for them; the last line says how much is whole.

    Exit status: 0 nothing wrong, 1 something does not have Kafka's format or cannot be read, 2 not possible as asked.
    """
    gc.disable()  # rows form no cycles: collections, also at every library's import, would visit millions of them and find nothing
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts threads for linear algebra, which is not used here
    from streaming.common.progress_line import ProgressLine
    from streaming.common.units import plain
    from streaming.terminal.dump.dumper import OutputError, dump
    from streaming.terminal.dump.request import Filters, Format, Payload, Request

    if no_payload and payload is not None:
        raise UsageError("--payload and --no-payload exclude each other: give one of them")
    if form in BINARY and sys.stdout.isatty():
        raise UsageError(f"--format {form} is not for a terminal: write it into a file (> rows.{form}) or a pipe")
    filters = Filters(
        from_offset=from_offset, to_offset=to_offset, from_time=from_time, producer_id=producer_id, transactional=transactional
    )
    request = Request(
        paths=paths,
        records=records,
        payload=Payload.NONE if no_payload else Payload(payload or Payload.NATURAL),
        verify=verify,
        summary=summary,
        format=Format(form or Format.TEXT),
        filters=filters,
        rows=not verify or records or summary or form is not None or filters != Filters(),
    )
    try:
        return dump(
            request,
            sys.stdout.buffer,
            lambda finding: click.echo(f"segtail: {plain(str(finding))}", err=True),
            ProgressLine.on_stderr(with_rows=True),
            lambda sentence: click.echo(sentence, err=request.format is not Format.TEXT),
        )
    except BrokenPipeError:  # the reader of the rows has stopped
        _discard_output()
        return 0
    except (OutputError, KeyboardInterrupt):  # there may be no reader any more, and Python would wait for it with the rest of the output
        _discard_output()
        raise
    finally:
        gc.freeze()  # so that Python's last collection has nothing to do


def _discard_output() -> None:
    """Discard the rest of the output: otherwise Python would flush it at its end, and report an error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
