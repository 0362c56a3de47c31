"""Why an answer about the transactions in log dirs may not be the whole truth, in sentences for people."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from streaming.formatting import format_list, format_word
from streaming.kafka.names import TRANSACTION_TOPIC
from streaming.metrics.transaction_columns import CoordinatorView
from streaming.offline.offline_agent import OfflineAgent
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)


def unread(agent: OfflineAgent, topic: str | None, exported: Sequence[Tail], listed: Iterable[Path]) -> Iterator[str]:
    """What was not read to its end or not understood: more transactions may be open there.

    Args:
        topic: only this one counts, None for all.
        exported: the logs that are exported.
        listed: the directories of all logs that were to be read.
    """
    if not agent.complete:
        yield "some logs change all the time and were not read to their ends"
    for log_dir in agent.host_status.log_dirs:
        if not log_dir.up:
            yield log_dir.problem or f"log dir {log_dir.log_dir} cannot be read"
    taken_up = {tail.partition.path for tail in agent.watcher.tails()}
    for path in sorted(set(listed) - taken_up):
        if path.is_dir() and topic in (None, path.name.rpartition("-")[0]):
            log.warning("log cannot be listed: no segment of it can be read", extra={"path": str(path)})
            yield f"{format_word(str(path))}: no segment of it can be read"
    for each in agent.watcher.unreadable():
        if topic in (None, each.log.topic):
            yield f"{format_word(str(each.path))} cannot be read: {each.error}"
    for tail in exported:
        where, cursor = format_word(str(tail.partition.path)), tail.cursor
        if topic in (None, cursor.log.topic) and cursor.stopped:
            yield f"{where} is not understood from offset {cursor.next_offset} on: {cursor.stopped}"
        elif topic in (None, cursor.log.topic) and not tail.replayed_whole:
            yield f"{where}: some of what is needed to know what is open there is gone or damaged"


def missing_coordinators(view: CoordinatorView) -> str:
    """Which coordinators' logs are missing, so that it is not known whether a transaction hangs."""
    if view.partitions is None:
        return f"no metadata log can be read here, so nothing shows how many partitions {TRANSACTION_TOPIC} has"
    missing = sorted(set(range(view.partitions)) - view.readable_partitions)
    if not missing:
        return "whether a transaction hangs is not known: its log or its coordinator's was not read to the end from a current replica"
    names = format_list([str(number) for number in missing], 10)
    return (
        f"{len(missing)} of {view.partitions} partitions of {TRANSACTION_TOPIC} are not here or no current replica: {names}; "
        "name the log dirs of the brokers that lead them too"
    )
