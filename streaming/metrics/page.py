"""The small page at ``/``: what is watched, for a person with a browser."""

from collections.abc import Iterable
from html import escape

import numpy as np

from streaming.formatting import format_duration, format_size
from streaming.metrics.exported import Logs
from streaming.metrics.observer import AgentStatus
from streaming.metrics.view import View
from streaming.protocol.scrub_messages import ScrubStatus
from streaming.protocol.status_messages import BlockedFile

TOP = 20
"""So many partitions are listed."""

_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>segtail</title>
<style>
body { font: 15px/1.5 sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em }
table { border-collapse: collapse }
th, td { padding: .2em 1em .2em 0; text-align: left }
</style>
<h1>segtail</h1>
<p><a href="metrics">metrics</a> · <a href="-/healthy">healthy</a> · <a href="-/ready">ready</a></p>
"""


def write_page(shown: View, agents: tuple[AgentStatus, ...], ready: bool) -> bytes:
    """Make the page, HTML in UTF-8."""
    logs = shown.logs
    pieces = [
        _HEAD,
        "" if ready else "<p>What is there is still on its way; a partition's counters appear once its backlog is read.</p>\n",
        "<h2>Agents</h2>\n",
        _table(("agent", "brokers", "state"), map(_agent_row, agents)),
        *(f"<p>{escape(agent.explanation)}</p>\n" for agent in agents if agent.explanation),
        *(f"<p>{escape(_blocked(file))}</p>\n" for agent in agents for file in agent.blocked),
        *(f"<p>{escape(line)}</p>\n" for agent in agents if agent.up for line in _unreadable(agent)),
        *(f"<p>{escape(line)}</p>\n" for agent in agents if agent.up for scrub in agent.scrubs for line in _scrubbed(scrub)),
        "<h2>Partitions</h2>\n",
        f"<p>{len(logs.labels):,} partitions of {len(shown.observed.columns):,} observed logs. Most bytes appended:</p>\n",
        _table(("partition", "bytes", "records", "log end offset"), _top_rows(logs)),
    ]
    return "".join(pieces).encode()


def _agent_row(agent: AgentStatus) -> tuple[str, ...]:
    state = "down" if not agent.up else "catching up" if agent.catching_up else "up"
    state = f"{state} ({', '.join(agent.problems)})" if agent.problems else state
    return agent.name, ", ".join(map(str, agent.brokers)), state


def _blocked(file: BlockedFile) -> str:
    what = f"Log dir {file.log_dir} of broker {file.broker} does not answer and is not watched"
    return f"{what}: a call to {file.path} has not come back for {format_duration(file.seconds)}."


def _unreadable(agent: AgentStatus) -> Iterable[str]:
    for log in agent.unreadable_logs[:TOP]:
        yield f"Partition {log.topic}-{log.partition} of broker {log.broker} cannot be read: {log.path}: {log.error}."
    count = sum(each.logs for each in agent.unreadable)
    if count > TOP:
        yield f"Of agent {agent.name}, {count - TOP:,} more partitions cannot be read."


def _scrubbed(scrub: ScrubStatus) -> Iterable[str]:
    where = f"of broker {scrub.broker}"
    for batch in scrub.corrupt_batches[:TOP]:
        yield f"{batch.path} {where} is damaged from byte {batch.position} on, offset {batch.offset}: {batch.fault}."
    if scrub.corrupt > min(TOP, len(scrub.corrupt_batches)):
        yield f"In log dir {scrub.log_dir} {where} {scrub.corrupt:,} places are damaged, all together."
    for file in scrub.unreadable_files[:TOP]:
        yield f"{file.path} {where} cannot be read: {file.error}."
    if scrub.unreadable > min(TOP, len(scrub.unreadable_files)):
        yield f"In log dir {scrub.log_dir} {where} {scrub.unreadable:,} files cannot be read, all together."


def _top_rows(logs: Logs) -> Iterable[tuple[str, ...]]:
    columns = logs.columns
    for log in np.argsort(-columns["appended_bytes"], kind="stable")[:TOP].tolist():
        size, records, end = (int(columns[name][log]) for name in ("appended_bytes", "appended_records", "log_end_offset"))
        yield f"{{{logs.labels[log]}}}", format_size(size), f"{records:,}", f"{end:,}"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{escape(each)}" for each in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(each)}" for each in row) + "\n" for row in rows)
    return f"<table>\n<tr>{head}\n{body}</table>\n"
