"""What a log carries across its place where reading does not simply go on: at its beginning, behind a hole, where it was cut off."""

import logging

from streaming.kafka.producers import Producers
from streaming.watcher.blobs import encode_ongoing
from streaming.watcher.bootstrap import Past, open_transactions_at
from streaming.watcher.tail import Tail

log = logging.getLogger(__name__)


def carry_over(tail: Tail) -> bytes | None:
    """What is open at the tail's place, as a column of the event that tells the place; None where its files cannot be read now.

    The tail's producers are set to what they are there.
    """
    if tail.place.next_offset == 0:
        tail.producers.reset(Producers.none(tail.producers.limit))
        return b""
    past = _past(tail)
    tail.producers.reset(None if past is None else past.producers)
    return None if past is None else encode_ongoing(past.ongoing)


def still_open(tail: Tail) -> bytes | None:
    """The same for a place that the tail has read up to: its producers are known."""
    known = tail.producers.now
    if known is not None and known.active is not None and not known.entries["open"].any():
        return b""
    past = _past(tail)
    # it may stand in a file that is deleted already, with all that told what was open there
    return None if past is None or past.cold else encode_ongoing(past.ongoing)


def _past(tail: Tail) -> Past | None:
    place = tail.place
    try:
        past = open_transactions_at(tail.partition.path, tail.segments, place.next_offset, producers_limit=tail.producers.limit)
    except OSError as error:
        log.warning(
            "what is open in a log cannot be told now", extra={"log": str(place.log), "path": str(tail.partition.path), "error": str(error)}
        )
        return None
    except MemoryError:
        raise
    except Exception:  # whatever is wrong with a snapshot or an old batch, the log is read on without
        log.exception("what is open in a log cannot be told", extra={"log": str(place.log), "path": str(tail.partition.path)})
        tail.doubts += 1
        return None
    tail.doubts += len(past.doubts)
    for doubt in past.doubts:
        log.warning("what is open in a log is told with a doubt", extra={"log": str(place.log), "doubt": doubt})
    return past
