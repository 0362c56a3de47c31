"""The limits of an agent's port are those in docs/security.md."""

import re
from pathlib import Path

from streaming.broker.agent import call_server, jobs, position_answers, service
from streaming.broker.disk import opening
from streaming.broker.protocol import agent_calls, position_messages
from streaming.common.web import places

ROOT = Path(__file__).parents[2]


def figures(limit: str) -> list[int]:
    """The figures of one row."""
    text = (ROOT / "docs/security.md").read_text().partition("### Limits of an agent's port")[2].partition("\n## ")[0]
    (row,) = [line for line in text.splitlines() if line.startswith(f"| {limit}")]
    return [int(each.replace(",", "")) for each in re.findall(r"\d[\d,]*", "|".join(row.split("|")[2:]))]


def test_the_page_shows_the_limits() -> None:
    kib, mib = 1 << 10, 1 << 20
    assert figures("a request") == [agent_calls.REQUEST_BYTES // mib]
    assert figures("a registration") == [agent_calls.REGISTER_BYTES // mib]
    assert figures("positions in a request") == [agent_calls.POSITIONS_BYTES // mib, position_messages.MOST_LOGS]
    assert figures("plans by positions at once") == [position_answers.AT_ONCE]
    assert figures("plans by positions that wait") == [position_answers.WAITING, position_answers.PRINCIPALS_WAITING]
    assert figures("headers of a call") == [call_server.HEADER_BYTES // kib]
    assert figures("a connection that takes nothing") == [call_server.STALLED_SECONDS]
    assert figures("connections without") == [call_server.CONNECTIONS]
    assert figures("connections of one client") == [call_server.CONNECTIONS_OF_CLIENT]
    assert figures("a connection until its first call") == [call_server.SILENT_SECONDS]
    assert figures("a connection without calls") == [call_server.IDLE_SECONDS]
    assert figures("the age of a connection") == [call_server.AGE_SECONDS]
    assert figures("threads") == [call_server.THREADS, call_server.CALLS]
    assert figures("calls that are answered") == [call_server.PRINCIPALS_CALLS]
    assert figures("the message of a call") == [call_server.REQUEST_SECONDS]
    assert figures("an answer") == [call_server.ANSWER_SECONDS, call_server.SCAN_SECONDS]
    assert figures("the wait of a plan") == [service.MOST_WAIT_SECONDS]
    assert figures("jobs that are remembered") == [jobs.MOST_JOBS]
    assert figures("beginnings of jobs") == [service.BEGINNINGS, service.BEGINNING_SECONDS]
    assert figures("descriptors") == [opening.RESERVED]


def test_the_descriptors_that_logs_leave_are_enough_for_both_ports_and_some_more() -> None:
    over_http = places.SILENT_CONNECTIONS + places.REQUESTS + places.PROBES + places.READERS
    assert call_server.CONNECTIONS + call_server.CALLS + over_http + 64 <= opening.RESERVED
