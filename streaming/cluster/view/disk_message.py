"""The answer of a job about disks to a query of `DISK_PATH`."""

from collections.abc import Sequence
from urllib.parse import parse_qs

from streaming.broker.protocol.disk_json import BY, DiskAnswer
from streaming.cluster.usage.disk_answer import answer_of
from streaming.cluster.view.disk_use import disk_found
from streaming.cluster.view.observer import AgentStatus
from streaming.cluster.view.view import View
from streaming.errors import UsageError

MOST_ROWS = 1000
_USUAL_ROWS = 50


def disk_message(query: str, view: View, agents: Sequence[AgentStatus], now_ms: int) -> DiskAnswer:
    """The log dirs of all agents, with the largest rows.

    Args:
        query: ``by=topic|partition|dir|kind&limit=N``, both optional.

    Raises:
        UsageError: a parameter is not understood; the sentence names it.
    """
    try:
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True, max_num_fields=20, errors="strict").items()}
    except ValueError as error:  # UnicodeDecodeError is one
        raise UsageError("the query is not understood: it has too many parameters, or is not UTF-8") from error
    for name in given:
        if name not in ("by", "limit"):
            raise UsageError(f"{name[:50]!r} is no parameter here; there are by, limit")
    by, limit = given.get("by", BY[0]), given.get("limit", str(_USUAL_ROWS))
    if by not in BY:
        raise UsageError(f"by is one of {', '.join(BY)}")
    if not (limit.isascii() and limit.isdigit() and 1 <= int(limit[:9]) <= MOST_ROWS):
        raise UsageError(f"limit is a number of rows from 1 to {MOST_ROWS}")
    return answer_of(disk_found(view, agents, now_ms), by, int(limit))
