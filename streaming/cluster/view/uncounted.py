"""What agents say of logs whose records they have not counted."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streaming.common.log_key import LogKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncounted:
    """``errors``: why a log is not counted, of logs that are not only waiting for it. ``idle``: the names of agents that count none."""

    errors: Mapping[LogKey, str] = field(default_factory=dict)
    idle: frozenset[str] = frozenset()
