"""What a start after a crash reads, and what a power cut may take, against the loops that Kafka runs."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.rules.config_values import Configs, ValueSource, broker_configs
from streaming.rules.restart_cost import (
    NOT_KNOWN,
    THREADS,
    LogSegments,
    RecoveryPoints,
    not_fsynced_bytes,
    on_no_disk_bytes,
    recovery_threads,
    scanned_bytes,
)
from tests.tables import each_row


@dataclass(frozen=True)
class Log:
    """One byte an offset, so that every number can be counted."""

    bases: tuple[int, ...]
    end: int
    point: int
    partition: int = 0

    @property
    def sizes(self) -> list[int]:
        return [after - base for base, after in zip(self.bases, (*self.bases[1:], self.end), strict=True)]

    @property
    def position(self) -> int:
        held = max((base for base in self.bases if base <= self.point), default=self.bases[0])
        return min(max(self.point - held, 0), self.end - held)

    def scanned_by_kafka(self) -> int:
        """`LogSegments.values(recoveryPoint, Long.MAX_VALUE)`: from the floor of the recovery point on, or all."""
        begin = max((base for base in self.bases if base <= max(self.point, 0)), default=self.bases[0])
        return sum(size for base, size in zip(self.bases, self.sizes, strict=True) if base >= begin)


@st.composite
def logs(draw: st.DrawFn) -> Log:
    steps = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    first = draw(st.integers(0, 20))
    bases = tuple(first + sum(steps[:number]) for number in range(len(steps)))
    end = bases[-1] + draw(st.integers(0, 9))
    return Log(bases, end, draw(st.one_of(st.just(-1), st.integers(0, end))), draw(st.integers(0, 2)))


def columns(some: list[Log]) -> tuple[LogSegments, RecoveryPoints, np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    counts = np.array([len(log.bases) for log in some], np.int64)
    segments = LogSegments(
        first=np.cumsum(counts) - counts,
        base=np.array([base for log in some for base in log.bases], np.int64),
        size=np.array([size for log in some for size in log.sizes], np.int64),
    )
    points = RecoveryPoints(
        offset=np.array([log.point for log in some], np.int64), position=np.array([log.position for log in some], np.int64)
    )
    return segments, points, np.array([log.end for log in some], np.int64)


@given(st.lists(logs(), max_size=6))
def test_a_start_reads_what_kafka_reads_and_what_is_above_a_recovery_point_is_counted(some: list[Log]) -> None:
    segments, points, ends = columns(some)
    scanned = scanned_bytes(segments, points)
    assert scanned.tolist() == [log.scanned_by_kafka() for log in some]
    assert not_fsynced_bytes(scanned, points, ends).tolist() == [log.end - min(max(log.point, log.bases[0]), log.end) for log in some]


@given(st.lists(logs(), max_size=6))
def test_no_byte_that_is_on_no_disk_is_left_out(some: list[Log]) -> None:
    """What is above every recovery point, in the longest log; more at most by the segment that holds the largest one."""
    segments, points, ends = columns(some)
    found = on_no_disk_bytes(segments, points, ends, np.array([log.partition for log in some], np.int64), 3).tolist()
    for number, most in enumerate(found):
        own = [log for log in some if log.partition == number]
        if not own:
            assert most == NOT_KNOWN
            continue
        longest = max(log.end for log in own)
        safe = max(max(log.point, 0) for log in own)
        exact = max(longest - max(safe, max(log.bases[0] for log in own if log.end == longest)), 0)
        assert exact <= most <= max(sum(log.sizes) for log in own)


@given(st.lists(logs(), min_size=1, max_size=6))
def test_what_is_not_known_is_no_number(some: list[Log]) -> None:
    segments, points, ends = columns(some)
    unknown = RecoveryPoints(offset=np.full(len(some), -2), position=points.position)
    assert set(scanned_bytes(segments, unknown).tolist()) == {NOT_KNOWN}
    assert set(not_fsynced_bytes(scanned_bytes(segments, unknown), unknown, ends).tolist()) == {NOT_KNOWN}
    assert set(on_no_disk_bytes(segments, unknown, ends, np.zeros(len(some), np.int64), 1).tolist()) == {NOT_KNOWN}


_STATIC = broker_configs((), ValueSource.STATIC)


def _set(value: str, source: ValueSource = ValueSource.STATIC) -> Configs:
    return broker_configs(((THREADS, value),), source)


@each_row(
    ("configs", "version", "threads"),
    [
        pytest.param(Configs(), 30, -1, id="nothing is known"),
        pytest.param(_STATIC, 21, 1, id="its properties do not set it, and it is of 3.9"),
        pytest.param(_STATIC, 22, 2, id="likewise, and it is of 4.0"),
        pytest.param(_STATIC, -1, -1, id="likewise, and its version is not known"),
        pytest.param(_set("8", ValueSource.DYNAMIC), -1, 8, id="it is set"),
        pytest.param(_set(" +8 "), 30, 8, id="its properties set it, as Kafka reads numbers"),
        pytest.param(_set("many"), 30, -1, id="what they set is no number"),
        pytest.param(_set("${env:THREADS}"), 30, -1, id="what they set stands somewhere else"),
        pytest.param(_set(""), 30, -1, id="they set nothing"),
        pytest.param(_set("0"), 30, -1, id="no broker starts with that"),
        pytest.param(_set("2147483648"), 30, -1, id="likewise, it is too large"),
        pytest.param(_set("8", ValueSource.DYNAMIC).over(_set("many")), 30, 8, id="what counts can be read"),
        pytest.param(_set("many", ValueSource.DYNAMIC).over(_set("8")), 30, 8, id="a broker ignores such a dynamic value"),
    ],
)
def test_threads(configs: Configs, version: int, threads: int) -> None:
    assert recovery_threads(configs, version) == threads
