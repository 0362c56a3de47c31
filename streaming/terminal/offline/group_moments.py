"""Between which moments committed offsets were read from log dirs, and the ends of the logs that they are held against."""

from collections.abc import Sequence
from dataclasses import dataclass

from streaming.broker.protocol.group_json import ReadMoments
from streaming.terminal.offline.coordinator_replay import Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class EndMoments:
    """Between which moments the ends of logs were read, Unix milliseconds."""

    from_ms: int
    until_ms: int


def moments(replayed: Sequence[Replayed], high_watermarks: Sequence[int], ends: EndMoments) -> ReadMoments | None:
    """Those of coordinators' logs, of which what is below high watermarks counts; None if there are none."""
    if not replayed:
        return None
    return ReadMoments(
        commits_from_ms=min(each.as_of_ms(upto) for each, upto in zip(replayed, high_watermarks, strict=True)),
        commits_until_ms=max(each.read_ms for each in replayed),
        ends_from_ms=ends.from_ms,
        ends_until_ms=ends.until_ms,
    )
