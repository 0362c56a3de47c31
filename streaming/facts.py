"""What an agent says of a log besides what was appended: what its rules need that stands in other files than the segments.

Written by the agent, carried through the fold as it is, judged where the metrics are rendered.
"""

import json
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from streaming.errors import FormatError
from streaming.rows import SEGMENTS

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """Offsets are Kafka's own, times Unix milliseconds, -1 where there is none.

    ``segments`` are of `streaming.rows.SEGMENTS`; the active one as it was when the facts were told. ``oldest_timestamp`` is of the first
    batch at or after the log start that holds records, ``active_first_timestamp`` of the first batch of the active segment.
    ``replicas`` and ``isr`` are broker ids by the metadata log of the log's own broker, None where it does not know the partition.
    ``configs`` is what the metadata log configures of the topic (`streaming.rules.limits`), "" for nothing.
    """

    segments: NDArray[np.void] = field(default_factory=lambda: np.empty(0, SEGMENTS))
    local_log_start_offset: int = -1
    oldest_timestamp: int = -1
    active_first_timestamp: int = -1
    cleaner_checkpoint: int = -1
    replicas: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    configs: str = ""

    def encode(self) -> bytes:
        """As bytes: a byte with the version, four with the length of a JSON list of everything but the segments, and these."""
        rest = json.dumps(
            [
                self.local_log_start_offset,
                self.oldest_timestamp,
                self.active_first_timestamp,
                self.cleaner_checkpoint,
                self.replicas,
                self.isr,
                self.configs,
            ],
            separators=(",", ":"),
        ).encode()
        return bytes([_VERSION]) + len(rest).to_bytes(4, "little") + rest + self.segments.tobytes()


def decode_segments(facts: bytes) -> NDArray[np.void]:
    """The segments alone of what `Facts.encode` made.

    Raises:
        FormatError: it is of another version.
    """
    return np.frombuffer(facts, SEGMENTS, offset=_rest(facts).stop)


def decode(facts: bytes) -> Facts:
    """What `Facts.encode` made.

    Raises:
        FormatError: it is of another version.
    """
    local_start, oldest, active_first, cleaner, replicas, isr, configs = json.loads(facts[_rest(facts)])
    return Facts(
        segments=decode_segments(facts),
        local_log_start_offset=local_start,
        oldest_timestamp=oldest,
        active_first_timestamp=active_first,
        cleaner_checkpoint=cleaner,
        replicas=None if replicas is None else tuple(replicas),
        isr=None if isr is None else tuple(isr),
        configs=configs,
    )


def _rest(facts: bytes) -> slice:
    if facts[:1] != bytes([_VERSION]):
        raise FormatError(f"facts of a log are of version {facts[:1].hex()}, not {_VERSION}: is the agent of another version?")
    return slice(5, 5 + int.from_bytes(facts[1:5], "little"))
