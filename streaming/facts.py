"""What an agent says of a log besides what was appended: what its rules need that stands in other files than the segments.

Written by the agent, carried through the fold as it is, judged where the metrics are rendered.
"""

import json
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streaming.errors import FormatError
from streaming.rows import SEGMENTS

_VERSION = 2
_READ = (1, _VERSION)

UNREADABLE = -2
"""Stands for an offset of a checkpoint that is there and cannot be read, or is of a version that is not known."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Facts:
    """Offsets are Kafka's own, times Unix milliseconds, -1 where there is none.

    ``segments`` are of `streaming.rows.SEGMENTS`; the active one as it was when the facts were told. ``oldest_timestamp`` is of the first
    batch at or after the log start that holds records, ``active_first_timestamp`` of the first batch of the active segment, which was
    made at ``active_created_ms``.
    ``cleaner_checkpoint`` may be `UNREADABLE`.
    ``replicas`` (without ``adding_replicas``, which a reassignment adds) and ``isr`` are broker ids by the metadata log of the log's own
    broker, None where it does not know the partition.
    ``leader_metadata_version`` is the highest metadata.version that the leader's registration supports, -1 where it names none (before
    Kafka 3.3), nobody leads or nobody knows.
    ``configs`` is what the metadata log configures of the topic (`streaming.rules.limits`), "" for nothing.
    """

    segments: NDArray[np.void] = field(default_factory=lambda: np.empty(0, SEGMENTS))
    local_log_start_offset: int = -1
    oldest_timestamp: int = -1
    active_first_timestamp: int = -1
    active_created_ms: int = -1
    cleaner_checkpoint: int = -1
    replicas: tuple[int, ...] | None = None
    isr: tuple[int, ...] | None = None
    adding_replicas: tuple[int, ...] = ()
    leader_metadata_version: int = -1
    configs: str = ""

    @property
    def all_replicas(self) -> tuple[int, ...] | None:
        """Those that a reassignment adds among them, None where nobody knows."""
        return None if self.replicas is None else self.replicas + self.adding_replicas

    def encode(self) -> bytes:
        """As bytes: a byte with the version, four with the length of a JSON object, the object, and the segments.

        The object holds everything but the segments by its name here; what has its default is left out.
        """
        told = {name: value for name, default in _DEFAULTS.items() if (value := getattr(self, name)) != default}
        rest = json.dumps(told, separators=(",", ":")).encode()
        return bytes([_VERSION]) + len(rest).to_bytes(4, "little") + rest + self.segments.tobytes()


_DEFAULTS = {each.name: each.default for each in fields(Facts) if each.name != "segments"}

_BEFORE = ("local_log_start_offset", "oldest_timestamp", "active_first_timestamp", "cleaner_checkpoint", "replicas", "isr", "configs")
"""What version 1 held, as a list in this order."""


def decode_segments(facts: bytes) -> NDArray[np.void]:
    """The segments alone of what `Facts.encode` made.

    Raises:
        FormatError: it is of another version.
    """
    return np.frombuffer(facts, SEGMENTS, offset=_rest(facts).stop)


def decode(facts: bytes) -> Facts:
    """What `Facts.encode` made, here or in an earlier release; names that are not known here are passed over.

    Raises:
        FormatError: it is of another version.
    """
    rest = json.loads(facts[_rest(facts)])
    told: dict[str, Any] = _of_version_1(rest) if facts[0] == 1 else rest
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in told.items() if name in _DEFAULTS}
    return Facts(segments=decode_segments(facts), **values)


def _of_version_1(values: list[Any]) -> dict[str, Any]:
    """An agent of that time said what the topic sets only where it sets something; where it knew the replicas, it knew that too."""
    told = dict(zip(_BEFORE, values, strict=True))
    if told["replicas"] is not None and told["configs"]:
        told["configs"] = json.dumps({"topic": {}} | json.loads(told["configs"]), separators=(",", ":"))
    return told


def _rest(facts: bytes) -> slice:
    if facts[:1] not in _SPELLED:
        raise FormatError(f"facts of a log are of version {facts[:1].hex()}, not {_VERSION}: is the agent of another version?")
    return slice(5, 5 + int.from_bytes(facts[1:5], "little"))


_SPELLED = tuple(bytes([version]) for version in _READ)
