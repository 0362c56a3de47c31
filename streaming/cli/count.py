"""``segtail count``: show how many records there are, as consumers would get them."""

import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from streaming.cli.options import with_settings
from streaming.cli.output_options import with_form
from streaming.cli.source import NOT_KNOWN
from streaming.errors import UsageError
from streaming.formatting import format_be, format_count, format_list, format_table
from streaming.settings import Settings

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.offline.record_counts import Answer, Row

_COUNTS = ("data", "aborted", "control", "readable")
_RIGHT = ("partitions", "broker", "from", "to", *_COUNTS)
_NAMED = 5


@click.command("count")
@with_settings("log_dirs", "server_properties", "read_rate")
@click.argument("topics", nargs=-1, metavar="[TOPIC...]")
@click.option("--by", type=click.Choice(("topic", "partition")), default="topic", show_default=True, help="One line for each.")
@with_form
def command(settings: Settings, topics: tuple[str, ...], by: str, form: str) -> int:
    """Count the records of all topics, or of those that are named, in Kafka's log dirs.

    It reads the headers of all batches, whether brokers are up or down; no record is opened or shown. One replica of each partition is
    counted: the leader, if it is known and here, else the one that is furthest; from its log start to its high watermark.

    "data" are records that producers have sent, without those that compaction has removed; "aborted" those of them that belong to aborted
    transactions; "control" markers of transactions, which have offsets too. "readable" is what a consumer with read_committed
    gets: data that is not aborted, up to the last stable offset. One with read_uncommitted gets "data".

    Exit status: 0 done, 4 something could not be read or counted, 1 failed, 2 not possible as asked.
    """
    from streaming.disk.logdirs import open_log_dirs
    from streaming.offline.record_counts import count_records
    from streaming.progress_line import ProgressLine

    with ProgressLine.on_stderr() as progress:
        answer = count_records(open_log_dirs(settings.log_dirs), topics, settings, time.time_ns() // 1_000_000, progress)
    missing = sorted(set(topics) - {row.topic for row in answer.rows} - {topic for topic, _ in answer.elsewhere or ()})
    if missing and not answer.doubts:
        raise UsageError(f"no partition of {format_list(missing, _NAMED)} lies in these log dirs")
    if form == "json":
        click.echo("[" + ",\n ".join(json.dumps(one) for one in _objects(answer.rows, by)) + "]")
        for line in (*_unseen(answer), *answer.doubts, *_errors(answer.rows)):
            click.echo(f"segtail: {line}", err=True)
    else:
        click.echo("\n".join(_lines(answer, by)))
    return 0 if answer.complete else NOT_KNOWN


def _objects(rows: "Sequence[Row]", by: str) -> Iterator[dict[str, object]]:
    """The objects for JSON. Of a topic, a sum is null if one of its partitions has no value."""
    if by == "partition":
        yield from map(dataclasses.asdict, rows)
        return
    for topic, partitions in _topics(rows).items():
        counts = {name: _sum(partitions, name) for name in (*_COUNTS, "waiting")}
        more = {name: sum(getattr(row, name) for row in partitions) for name in ("unreplicated", "remote_offsets")}
        yield {"topic": topic, "partitions": len(partitions), **counts, **more}


def _topics(rows: "Sequence[Row]") -> "dict[str, list[Row]]":
    topics: dict[str, list[Row]] = {}
    for row in rows:
        topics.setdefault(row.topic, []).append(row)
    return topics


def _sum(rows: "Sequence[Row]", name: str) -> int | None:
    values = [getattr(row, name) for row in rows]
    return None if None in values else sum(values)


def _lines(answer: "Answer", by: str) -> Iterator[str]:
    """A table, the sum, and what is not in it."""
    if by == "partition":
        cells = [
            (
                _name(row),
                str(row.broker),
                _shown(row.first_offset),
                _shown(row.next_offset),
                *(_shown(getattr(row, name)) for name in _COUNTS),
            )
            for row in answer.rows
        ]
        yield from format_table([("partition", "broker", "from", "to", *_COUNTS), *cells], _RIGHT)
    else:
        sums = [(topic, str(len(rows)), *(_shown(_sum(rows, name)) for name in _COUNTS)) for topic, rows in _topics(answer.rows).items()]
        yield from format_table([("topic", "partitions", *_COUNTS), *sums], _RIGHT)
    yield ""
    counted = [row for row in answer.rows if row.data is not None]
    data, aborted, control = (sum(getattr(row, name) for row in counted) for name in _COUNTS[:3])
    within = format_count(len(counted), "partition")
    yield f"{format_count(data, 'data record')} in {within}, {aborted:,} of them aborted, and {format_count(control, 'control record')}"
    yield from _notes(answer.rows)
    yield from (f"- {doubt}" for doubt in (*_unseen(answer), *answer.doubts, *_errors(answer.rows)))


def _unseen(answer: "Answer") -> Iterator[str]:
    """The partitions that have no directory here."""
    if answer.elsewhere is None:
        yield "no metadata log can be read here, so nothing shows how many partitions there are"
    elif answer.elsewhere:
        names = format_list([f"{topic}-{number}" for topic, number in answer.elsewhere], _NAMED)
        count = len(answer.elsewhere)
        yield (
            f"{format_count(count, 'partition')} that the metadata log knows {format_be(count)} not here, and not counted: {names}; "
            "name the log dirs of the brokers that have them too"
        )


def _notes(rows: "Sequence[Row]") -> Iterator[str]:
    """What is not counted, and why, in sentences."""
    waiting = [row for row in rows if row.waiting]
    if waiting:
        total = sum(row.waiting or 0 for row in waiting)
        yield f"{total:,} {'waits' if total == 1 else 'wait'} for open transactions (see `segtail transactions`): {_named(waiting)}"
    unreplicated = [row for row in rows if row.unreplicated]
    if unreplicated:
        total = sum(row.unreplicated for row in unreplicated)
        yield (
            f"{total:,} after the high watermark {format_be(total)} not counted, because consumers may not read them yet, "
            f"as far as can be told here: {_named(unreplicated)}"
        )
    remote = [row for row in rows if row.remote_offsets]
    if remote:
        total = sum(row.remote_offsets for row in remote)
        yield f"{format_count(total, 'offset')} {format_be(total)} only in remote storage, and not counted: {_named(remote)}"
    unknown = [row for row in rows if row.high_watermark is None and row.next_offset is not None]
    if unknown:
        yield f"counted to the end of the log, because the high watermark is not known: {_named(unknown)}"


def _errors(rows: "Sequence[Row]") -> Iterator[str]:
    for row in rows:
        if row.error:
            yield f"{_name(row)} of broker {row.broker} {'has damage' if row.data is not None else 'cannot be counted'}: {row.error}"


def _named(rows: "Sequence[Row]") -> str:
    return format_list([_name(row) for row in rows], _NAMED)


def _name(row: "Row") -> str:
    return f"{row.topic}-{row.partition}"


def _shown(value: int | None) -> str | None:
    return None if value is None else str(value)
