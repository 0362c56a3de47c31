"""``segtail transactions``: show the open transactions on disk, and which of them will never end."""

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from streaming.cli.options import log_once, with_settings
from streaming.cli.output_options import with_form
from streaming.cli.times import Moment
from streaming.errors import UsageError
from streaming.formatting import format_duration, format_table, format_time, format_word
from streaming.settings import Settings

if TYPE_CHECKING:  # the code that reads the disk imports numpy and pyarrow: not for --help
    from streaming.offline.open_transactions import Answer, OpenTransaction

NOTHING_HANGS, SOMETHING_HANGS, UNKNOWN_WHETHER_HANGING = 0, 3, 4
"""Exit status."""

_HEADS = (
    "partition",
    "broker",
    "first offset",
    "since",
    "open for",
    "silent for",
    "holds back",
    "producer",
    "transactional id",
    "state",
    "verdict",
)
_RIGHT = ("broker", "first offset", "open for", "silent for", "holds back")


@click.command("transactions")
@with_settings("log_dirs", "server_properties", "hanging_after", "stuck_after")
@click.option("--topic", metavar="T", help="Only this topic.")
@click.option("--at", type=Moment(), metavar="TIME", help=f"Judge as of this time: {Moment.accepts}.  [default: now]")
@with_form
def command(settings: Settings, topic: str | None, at: int | None, form: str) -> int:
    """Show every open transaction in Kafka's log dirs: its start, its producer, what it holds back from readers, and its verdict.

    It only reads the disk, whether brokers are up or down; give the log dirs of all brokers that are readable here. A transaction holds
    back the offsets that readers of committed data cannot see yet.

    A transaction is hanging if no coordinator will ever end it and it has been silent for --hanging-after; until then it is unclaimed. The
    command that aborts a transaction is shown for hanging ones only: to abort a live one breaks exactly-once. If a coordinator's log cannot
    be read, the verdict on a transaction that no coordinator knows is "unknown". A transaction that has been silent for --stuck-after, and
    is neither hanging, overdue nor in two-phase commit, is also stuck.

    Exit status: 0 nothing is hanging, 3 something is, 4 not known, 2 not possible as asked.
    """
    from streaming.disk.logdirs import open_log_dirs
    from streaming.offline.open_transactions import find_open
    from streaming.progress_line import ProgressLine

    log_once()
    now_ms = time.time_ns() // 1_000_000 if at is None else at
    log_dirs = open_log_dirs(settings.log_dirs)
    with ProgressLine.on_stderr() as progress:
        answer = find_open(log_dirs, topic, settings, now_ms, progress.add)
    if topic is not None and not (answer.partitions or answer.doubtful):
        raise UsageError(f"--topic {topic}: no partition of it lies in these log dirs")
    if form == "json":
        click.echo(json.dumps([_fields(one) for one in answer.transactions], indent=2))
        for doubt in answer.doubts:
            click.echo(f"segtail: {doubt}", err=True)
    else:
        click.echo("\n".join(_lines(answer, now_ms)))
    return SOMETHING_HANGS if answer.hanging else UNKNOWN_WHETHER_HANGING if answer.doubtful else NOTHING_HANGS


def _fields(one: "OpenTransaction") -> dict[str, int | str | bool | list[str] | None]:
    """The fields for JSON; timestamps are Unix milliseconds."""
    return {
        "broker": one.broker,
        "topic": one.topic,
        "partition": one.partition,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "first_offset": one.first_offset,
        "start_timestamp": one.start_ms,
        "last_timestamp": one.last_ms,
        "holds_offsets": one.holds_offsets,
        "transactional_id": one.transactional_id,
        "coordinator_state": one.coordinator_state,
        "verdict": one.verdict,
        "stuck": one.stuck,
        "abort_command": one.abort_command,
        "groups": list(one.groups),
    }


def _lines(answer: "Answer", now_ms: int) -> Iterator[str]:
    """A table, advice for the hanging ones, and a sum."""
    if answer.transactions:
        yield from format_table([_HEADS, *(_cells(one, now_ms) for one in answer.transactions)], _RIGHT)
        yield ""
    commands = [one.abort_command for one in answer.transactions if one.abort_command]
    if commands:
        yield from ("Nobody will end the hanging ones. Once their producers are known to be gone, these commands do:", *commands, "")
    for one in answer.hanging:
        if one.groups:
            groups = ", ".join(map(format_word, one.groups))
            yield f"Committed offsets of these groups wait for {one.topic}-{one.partition} at {one.first_offset}: {groups}"
            yield "Their consumers get UNSTABLE_OFFSET_COMMIT where they ask for stable offsets, and their offsets do not expire."
            yield ""
    opened, hanging = len(answer.transactions), len(answer.hanging)
    yield f"{opened} open in {answer.partitions} partitions, {hanging} hanging" + (", as far as is known here:" if answer.doubtful else "")
    yield from (f"- {doubt}" for doubt in answer.doubts)


def _cells(one: "OpenTransaction", now_ms: int) -> tuple[str | None, ...]:
    return (
        f"{one.topic}-{one.partition}",
        str(one.broker),
        str(one.first_offset),
        format_time(one.start_ms),
        format_duration((now_ms - one.start_ms) / 1000),
        format_duration((now_ms - one.last_ms) / 1000),
        None if one.holds_offsets is None else str(one.holds_offsets),
        f"{one.producer_id}, epoch {one.producer_epoch}",
        None if one.transactional_id is None else format_word(one.transactional_id),
        one.coordinator_state,
        f"{one.verdict}, stuck" if one.stuck else one.verdict,
    )
