"""What is said of brokers by whether their process is there: why one is down, or writes nothing."""

from streaming.broker.protocol.status_messages import ProcessStatus
from streaming.common.formatting import format_time
from streaming.rules.broker_process import ProcessState

NOBODY = "nobody holds the locks of its log dirs: its process has ended, or they are a copy"
"""Of a broker whose process was not seen to end."""


def ended(process: ProcessStatus | None) -> str:
    """When the process of a broker that is down was seen to end; "" if it was not."""
    if process is None or process.state != ProcessState.ENDED:
        return ""
    first, last = (format_time(each, "seconds") for each in (process.last_ms, process.since_ms))
    return f"its process has ended {f'at {last}' if first == last else f'between {first} and {last}'}"


def down(process: ProcessStatus | None) -> str:
    """Why a broker is down, as far as its process shows it."""
    if process is None or process.state == ProcessState.UNKNOWN:
        return "it sends no heartbeats, and was not shut down"
    if process.state == ProcessState.UP:
        return "it sends no heartbeats, although its process is there: it hangs, or the network is cut"
    return f"{ended(process) or NOBODY}; it was not shut down"


def silent(process: ProcessStatus | None) -> str:
    """What a broker may suffer from that writes nothing."""
    if process is None or process.state == ProcessState.UNKNOWN:
        return "it is down, it hangs, or its disks do"
    return "its process is there: it hangs, or its disks do" if process.state == ProcessState.UP else ended(process) or NOBODY


def serves_nothing(process: ProcessStatus | None) -> str:
    """What is added of a broker that starts: whether its process is there, if that is known."""
    return "; its process is there" if process is not None and process.state == ProcessState.UP else ""
