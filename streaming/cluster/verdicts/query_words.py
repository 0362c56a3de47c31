"""What is known of a streaming query besides its lag, in words for people."""

from collections.abc import Iterator

from streaming.cluster.consumers.query_groups import QueryFacts
from streaming.common.formatting import TimeWords, format_name


def query_notes(facts: QueryFacts | None, now_ms: int) -> Iterator[str]:
    """Sentences about a query as of ``now_ms``, Unix milliseconds; nothing of any other group."""
    if facts is None:
        return
    known = "known to be " if facts.doubts else ""
    done = f"; micro-batch {facts.batch} is the last one {known}committed" if facts.batch >= 0 else ""  # else doubts say why
    yield f"its checkpoint is {format_name(facts.checkpoint, 500)}{done}"
    if facts.planned_batch >= 0:
        at = TimeWords(now_ms).at(facts.planned_ms)
        yield f"micro-batch {facts.planned_batch} is planned since {at} and not committed, so what it reads does not count as read"
    yield from facts.notes
