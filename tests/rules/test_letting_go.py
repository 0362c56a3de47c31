"""When an agent ends because its brokers have left their volumes."""

from dataclasses import replace

from streaming.rules.broker_process import NEVER_LOOKED, PATIENCE, ProcessLook, ProcessState, lets_go
from tests.tables import each_row

T = 1_700_000_000_000
AFTER = 30_000
LONG = PATIENCE * AFTER
UP = ProcessLook(ProcessState.UP, last_ms=T)


def ended(seconds: int) -> ProcessLook:
    return ProcessLook(ProcessState.ENDED, since_ms=T - 1000 * seconds, last_ms=T - 1000 * seconds)


def free(written_ms: int) -> ProcessLook:
    return ProcessLook(ProcessState.FREE, last_ms=written_ms)


def unknown(written_ms: int) -> ProcessLook:
    return ProcessLook(ProcessState.UNKNOWN, "its .lock may not be read", last_ms=written_ms)


def released(seconds: int, written_ms: int) -> ProcessLook:
    return replace(unknown(written_ms), released_ms=T - 1000 * seconds)


@each_row(
    ("what", "looks", "began_ms", "expected"),
    [
        ("a broker that runs keeps its agent", [UP], 0, False),
        ("one that ended a moment ago may come back", [ended(29)], 0, False),
        ("one that is away for long enough has left", [ended(30)], 0, True),
        ("also if the agent has just started", [ended(30)], T - 31_000, True),
        ("one of two is not all", [ended(300), UP], 0, False),
        ("both", [ended(300), ended(30)], 0, True),
        ("nobody was seen: it may be about to start", [free(T - 10 * LONG)], T - LONG + 1, False),
        ("but not for ever", [free(T - 10 * LONG)], T - LONG, True),
        ("locks that are not seen, files that change", [unknown(T - 5_000)], 0, False),
        ("and that do not any more", [unknown(T - LONG)], 0, True),
        ("a log dir in which nobody ever wrote", [unknown(-1)], T - LONG, True),
        ("a lock was released, another one cannot be asked", [released(30, T - 31_000)], 0, True),
        ("a moment ago", [released(29, T - 31_000)], 0, False),
        ("but the broker goes on without that log dir", [released(300, T - 5_000)], 0, False),
        ("before the first look", [NEVER_LOOKED], T - 1_000, False),
        ("log dirs of which nothing is known", [], T - 1_000, False),
        ("for long", [], T - LONG, True),
    ],
)
def test_it_lets_go(what: str, looks: list[ProcessLook], began_ms: int, expected: bool) -> None:
    assert lets_go(looks, began_ms=began_ms, after_ms=AFTER, now_ms=T) is expected
