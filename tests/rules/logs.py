"""Logs for the tests of retention and compaction: from a few numbers, or drawn at random."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streaming.common.rows import SEGMENTS
from streaming.rules.config_values import topic_configs
from streaming.rules.limits import effective_limits
from streaming.rules.retention_rule import LogFacts

Segment = tuple[int, int, int, int]
"""base offset, size, largest timestamp, time of the file"""


def log_facts(segments: Sequence[Segment], **given: Any) -> LogFacts:
    """A log that is replicated to its end and holds ten offsets in its active segment; configurations by name, ``.`` as ``_``."""
    end = int(given.pop("log_end_offset", segments[-1][0] + (10 if segments[-1][1] else 0)))
    facts: dict[str, object] = {
        "log_start_offset": segments[0][0],
        "log_end_offset": end,
        "high_watermark": end,
        "last_stable_offset": -1,
        "cleaner_checkpoint": -1,
        "oldest_record_ms": -1,
        "moving": False,
    }
    configs = {name.replace("_", "."): str(value) for name, value in given.items() if name not in facts}
    facts |= {name: value for name, value in given.items() if name in facts}
    return LogFacts(segments=np.array(list(segments), SEGMENTS), limits=effective_limits("t", topic_configs(configs.items())), **facts)


TIMES = st.integers(0, 60)


@st.composite
def any_log(draw: st.DrawFn, policies: Sequence[str]) -> LogFacts:
    """A small log with numbers so close together that every comparison is met from both sides, and at equality."""
    count = draw(st.integers(1, 6))
    steps = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    bases = np.cumsum(steps).tolist()
    sizes = [*draw(st.lists(st.integers(0, 6), min_size=count - 1, max_size=count - 1)), draw(st.integers(0, 4))]
    largest = draw(st.lists(st.one_of(st.just(-1), TIMES), min_size=count, max_size=count))
    modified = draw(st.lists(TIMES, min_size=count, max_size=count))
    end = bases[-1] + (draw(st.integers(1, 4)) if sizes[-1] else 0)
    start = draw(st.integers(bases[0], end))
    high_watermark = draw(st.one_of(st.just(end), st.integers(start, end)))
    return log_facts(
        list(zip(bases, sizes, largest, modified, strict=True)),
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=high_watermark,
        last_stable_offset=draw(st.one_of(st.just(-1), st.just(high_watermark), st.integers(start, high_watermark))),
        cleaner_checkpoint=draw(st.one_of(st.just(-1), st.integers(0, end + 2))),
        oldest_record_ms=draw(st.one_of(st.just(-1), TIMES)),
        cleanup_policy=draw(st.sampled_from(policies)),
        retention_ms=draw(st.one_of(st.just(-1), st.integers(0, 40))),
        retention_bytes=draw(st.one_of(st.just(-1), st.integers(0, 20))),
        min_compaction_lag_ms=draw(st.integers(0, 30)),
    )
