"""The line about brokers without a process: as of when their files are, and what a start would do."""

from collections.abc import Iterator, Sequence

from streaming.broker.protocol.listing_json import AwayBroker
from streaming.common.formatting import format_age, format_list, format_time

RETENTION = "would delete what is reclaimable"
TRANSACTIONS = "would abort what is overdue"
GROUPS = "would delete what retention and the expiry of offsets have let go by then"
COUNTS = "would first delete what is past its limits by then"
DISK = "would free what the next check frees"

_MOST_NAMED = 10


def lines(away: Sequence[AwayBroker], at_ms: int, start: str) -> Iterator[str]:
    """Which brokers are away, as of when their files are, and what a start at ``at_ms`` would do; nothing if there are none.

    Args:
        start: one of the phrases of this module.
    """
    if not away:
        return
    names = format_list([str(each.broker) for each in away], _MOST_NAMED)
    who = f"Broker {names} is" if len(away) == 1 else f"Brokers {names} are"
    ended = all(each.ended_ms >= 0 for each in away)
    state = "not running" if ended else "stopped, or this is a copy: nobody holds the locks of the log dirs"
    last_ms = max(each.last_ms for each in away)
    age = f" ({format_age((at_ms - last_ms) / 1000)})" if at_ms > last_ms else ""
    files = f"The files are as of the last write, {format_time(last_ms)}{age}. " if last_ms >= 0 else ""
    yield f"{who} {state}. {files}A start at {format_time(at_ms)} {start}"
