"""A log of orders with its segments and its configs, as an agent reports them."""

from typing import Any

import numpy as np

from streaming.common.rows import SEGMENTS
from tests.view.reported import Facts
from tests.view.rows import Row, log

NOW = 1_700_000_000


MS = NOW * 1000


def facts(*segments: tuple[int, int, int], configs: str = "", **values: Any) -> bytes:
    """Segments of (base offset, size, age of the largest timestamp in seconds)."""
    made = np.array([(base, size, MS - age * 1000, MS - age * 1000) for base, size, age in segments], SEGMENTS)
    given = {"isr": (1,), "replicas": (1,), "oldest_timestamp": int(made["largest_timestamp"][0]) if len(made) else -1, **values}
    return Facts(segments=made, configs=configs, **given).encode()


def orders(packed: bytes | None, **values: Any) -> Row:
    return log(**{"leader": 1, "leader_epoch": 0, "log_start_offset": 0, "log_end_offset": 100, "facts": packed, **values})


HOUR = '{"topic":{"retention.ms":"3600000"}}'


BELOW = '{"static":{},"topic":{"min.insync.replicas":"2","retention.ms":"3600000"}}'


NOTHING_SET = '{"topic":{}}'


COMPACT = '{"topic":{"cleanup.policy":"compact"}}'


SIZED = '{"topic":{"retention.ms":"604800000","retention.bytes":"1000"}}'
