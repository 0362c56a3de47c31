"""Answers which groups have offsets that wait for a transaction that is open in a log of ``__consumer_offsets``. Redacts names."""

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from streaming.broker.disk.segment_files import list_segments
from streaming.broker.protocol.status_messages import PendingCommits
from streaming.broker.watcher.pending_commits import waiting_groups
from streaming.broker.watcher.tail import Tail
from streaming.common.log_key import key_of
from streaming.kafka.formats.names import OFFSETS_TOPIC

log = logging.getLogger(__name__)

MOST_ANSWERED = 20
"""The most transactions that one request may contain: each needs a read of a log."""


def answer(transactions: Iterable[PendingCommits], tails: Iterable[Tail], redact: Callable[[str], str]) -> Iterator[PendingCommits]:
    """Return those of the transactions whose logs are here and can be read, with their groups.

    Args:
        redact: makes the name of a group that may leave the host.
    """
    wanted = [each for each in transactions if each.topic == OFFSETS_TOPIC][:MOST_ANSWERED]
    if not wanted:
        return
    there = {tail.cursor.log: tail for tail in tails}
    for each in wanted:
        tail = there.get(key_of(each))
        if tail is None or tail.away or not tail.resumed:
            continue
        try:
            found = waiting_groups(list_segments(tail.partition.path), each.producer_id, each.first_offset)
        except OSError as error:
            log.warning("groups that wait cannot be read", extra={"path": str(tail.partition.path), "error": str(error)})
            continue
        yield replace(each, groups=[redact(group) for group in found.groups], more=found.more)
