"""The walk in which Kafka deletes segments."""

from dataclasses import dataclass

from streaming.rules.retention_rule import LogFacts


@dataclass
class NaiveSegment:
    base: int
    size: int
    largest: int


def naive_deletable(log: LogFacts, now: int) -> int:
    """`UnifiedLog.deleteOldSegments`, statement by statement, on plain objects."""
    segments = [
        NaiveSegment(
            int(s["base_offset"]), int(s["size"]), int(s["largest_timestamp"] if s["largest_timestamp"] >= 0 else s["modified_ms"])
        )
        for s in log.segments
    ]
    before = len(segments)

    def delete_while(predicate):
        while segments:
            following = segments[1] if len(segments) > 1 else None
            upper = following.base if following else log.log_end_offset
            last_and_empty = following is None and segments[0].size == 0
            if not (log.high_watermark >= upper and predicate(segments[0], following) and not last_and_empty):
                return
            segments.pop(0)

    delete_while(lambda segment, following: following is not None and following.base <= log.log_start_offset)
    if log.limits.deletes:
        surplus = sum(segment.size for segment in segments) - log.limits.retention_bytes

        def too_much(segment, _following):
            nonlocal surplus
            if surplus - segment.size >= 0:
                surplus -= segment.size
                return True
            return False

        if log.limits.retention_bytes >= 0 and surplus >= 0:
            delete_while(too_much)
        if log.limits.retention_ms >= 0:
            delete_while(lambda segment, _following: now - segment.largest > log.limits.retention_ms)
    return before - len(segments)
