"""The report on disks: which line comes first, what is said of a log dir, and each column its own value."""

from dataclasses import replace
from typing import Any

import pytest

from streaming.broker.protocol.disk_json import DiskAnswer, DiskRow, KindUse, LogDirUse
from streaming.cluster.usage.disk_answer import Finding
from streaming.terminal.cli.disk_report import RECKONED, outlook, report, verdict

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
MIB = 1 << 20


def use(log_dir: str = "/d", **values: Any) -> LogDirUse:
    given = {"taken": 2 * MIB, "replicas": 3, "free": 4 * MIB, "capacity": 8 * MIB, "outlook": "never", "growth_day": -1}
    return LogDirUse(broker=1, log_dir=log_dir, **given | values)


def answer(*dirs: LogDirUse, rows: tuple[DiskRow, ...] = (), by: str = "topic", **values: Any) -> DiskAnswer:
    return DiskAnswer(
        **{"at_ms": NOW_MS, "by": by, "total": len(rows), "matched": len(rows), "log_dirs": [*dirs], "rows": [*rows]} | values
    )


def stated(each: LogDirUse, **values: Any) -> list[str]:
    """What is said of one log dir."""
    return list(report(answer(each, **values), []))[2:-2]


def cells(line: str) -> list[str]:
    return [word.strip() for word in line.split("  ") if word.strip()]


def test_what_is_wrong_comes_first_then_who_is_full_first_then_that_nobody_is() -> None:
    soon, later = use("/soon", outlook="full", full_ms=NOW_MS + HOUR), use("/later", outlook="full", full_ms=NOW_MS + 2 * HOUR)
    assert verdict(answer(later, soon, use()), []) == "/soon is full in 1h (2023-11-14T23:13:20Z)"
    wrong = [Finding(what, "do it") for what in ("a", "b", "c", "d")]
    assert [verdict(answer(soon), wrong[:count]) for count in (1, 2, 3, 4)] == [
        "a",
        "a; b",
        "a; b; and 1 other problem",
        "a; b; and 2 other problems",
    ]
    assert verdict(answer(use()), []) == "No log dir is full within a year, if it grows as it does"
    young = verdict(answer(use(growth_unknown=1)), [])
    assert young == "As far as is known here, no log dir is full within a year, if it grows as it does"
    unread = LogDirUse(broker=1, log_dir="/gone", up=False, problem="gone")
    assert verdict(answer(use(), unread), []) == "Whether every log dir has room is not known: /gone cannot be read"
    assert "no log there shows yet how it grows" in verdict(answer(use(), use(outlook="unknown")), [])


def test_what_a_start_that_goes_on_has_left_is_in_the_present() -> None:
    starting = use(recovering_bytes=3 * MIB, recovering_logs=2, recovering=["orders-0"], recovered_ms=NOW_MS + HOUR)
    text = "  its broker is starting after a crash: 3.0 MiB in 2 logs left to read, until about 2023-11-14T23:13:20Z: orders-0"
    assert text in stated(starting)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({}, "not full within a year"),
        ({"outlook": "unknown"}, "nobody can tell yet when it is full"),
        ({"outlook": "full", "full_ms": NOW_MS}, "full now"),
        ({"outlook": "full", "full_ms": NOW_MS + HOUR, "full_uncleaned_ms": NOW_MS + HOUR}, "full in 1h (2023-11-14T23:13:20Z)"),
        (
            {"growth_day": 5 * MIB, "frees_day": 6 * MIB, "full_uncleaned_ms": NOW_MS + HOUR},
            "not full within a year: it grows by 5.0 MiB a day, and retention frees 6.0 MiB of what is there within a day; "
            "if compaction frees nothing, full in 1h (2023-11-14T23:13:20Z)",
        ),
    ],
)
def test_when_a_log_dir_is_full(values: dict[str, Any], text: str) -> None:
    assert outlook(use(**values), NOW_MS) == text


def test_that_a_broker_was_shut_down_cleanly_is_stated_where_it_is_so_alone() -> None:
    assert "  its broker was shut down cleanly: the next start reads no log" in stated(use(recovery_bytes=0, clean=True))
    assert "  a start after a crash reads no log" in stated(use(recovery_bytes=0))
    assert not any("reads no log" in line for line in stated(use(recovery_bytes=0, replicas=0)))


def test_what_is_stated_of_a_log_dir() -> None:
    assert stated(use())[:2] == ["/d, broker 1: 2.0 MiB in 3 replicas; 4.0 MiB of 8.0 MiB free", "  not full within a year"]
    assert stated(use(free=-1))[0] == "/d, broker 1: 2.0 MiB in 3 replicas"
    assert stated(use(capacity=-1))[0] == "/d, broker 1: 2.0 MiB in 3 replicas; 4.0 MiB free"
    assert stated(LogDirUse(broker=1, log_dir="/d", up=False, problem="gone"))[0] == "log dir /d cannot be read: gone"
    why = "/d cannot be read: run as the broker's user"
    assert stated(LogDirUse(broker=1, log_dir="/d", up=False, problem=why))[0] == why
    kinds = [KindUse(kind=kind, taken=taken, apparent=0) for kind, taken in (("index", MIB), ("segment", 3 * MIB), ("stray", 0))]
    assert stated(use(kinds=kinds))[2] == "  segments 3.0 MiB, indexes 1.0 MiB"


def test_holes_in_files_a_quiet_broker_and_unknown_growth_are_stated() -> None:
    def more(**values: Any) -> list[str]:
        return [line for line in stated(use(**values))[2:] if line.startswith("  ")]

    assert more(apparent=2 * MIB, checkpoint_ms=NOW_MS - 60_000) == []
    assert more(taken=100, apparent=110) == []
    assert more(taken=100, apparent=111) == [
        "  the files are 111 B long: preallocated files have holes, and small files take a whole block"
    ]
    (quiet,) = more(checkpoint_ms=NOW_MS - 61_000)
    assert quiet.startswith("  no broker has written here for 1m 1s: ")
    (unknown,) = more(growth_unknown=2)
    assert unknown == "  the growth of 2 replicas is not known: all data there is only minutes old, or it is silent"
    unread, young = more(growth_unknown=3, growth_unread=1)
    assert unread == "  the growth of 1 replica is not known: its log cannot be read"
    assert young.startswith("  the growth of 2 replicas is not known: all data there is")


def test_what_is_tried_is_compared_with_what_is_in_force() -> None:
    tried, in_force = use(frees_now=3 * MIB), use(outlook="full", full_ms=NOW_MS + HOUR, frees_now=MIB)
    assert stated(tried, in_force=[in_force], what_if=["retention.ms=1h"])[1:4] == [
        "  as it is configured: full in 1h (2023-11-14T23:13:20Z)",
        "  with retention.ms=1h: not full within a year",
        "  the next check would free 3.0 MiB instead of 1.0 MiB",
    ]


def test_each_column_shows_its_own_value() -> None:
    sums = {"not_live": MIB, "growth_day": 2 * MIB, "frees_now": 3 * MIB, "frees_day": 4 * MIB, "next_ms": NOW_MS + HOUR}
    sums["on_no_disk"] = 5 * MIB
    row = DiskRow(topic="t", partition=5, broker=6, log_dir="/d", replicas=7, taken=8 * MIB, policy="delete", limits_assumed=True, **sums)
    numbers = ["8.0 MiB", "2.0 MiB", "3.0 MiB", "due", "4.0 MiB", "1.0 MiB"]
    for by, head, last in (
        ("topic", "t", ["7", "5.0 MiB", "delete?"]),
        ("partition", "t-5", ["6", "/d"]),
        ("dir", "/d", ["6", "7"]),
    ):
        lines = list(report(answer(rows=(row,), by=by, log_dirs=[]), []))
        (line,) = (each for each in lines if "8.0 MiB" in each)
        assert cells(line) == [head, *numbers, *last]
        assert any(each.startswith("assumed: t: ") for each in lines) == (by == "topic")
    waits = replace(row, frees_now=0, not_live=0, growth_day=-1, limits_assumed=False, on_no_disk=-1)
    (line,) = (each for each in report(answer(rows=(waits,)), []) if "8.0 MiB" in each)
    assert cells(line) == ["t", "8.0 MiB", "-", "0 B", "in 1h", "4.0 MiB", "-", "7", "-", "delete"]
    kind = DiskRow(kind="index", taken=MIB, apparent=-1)
    assert cells(list(report(answer(rows=(kind,), by="kind"), []))[-1]) == ["indexes", "1.0 MiB", "-"]


def test_rows_that_are_left_out_are_counted_and_findings_have_advice_and_growth_its_explanation() -> None:
    row = DiskRow(topic="t", taken=1)
    lines = list(report(answer(use(growth_day=0), rows=(row,), matched=3), [Finding("this is wrong", "do that")]))
    assert "2 more: --limit 0 shows all" in lines
    assert lines[lines.index("this is wrong.") + 1] == "  do that"
    assert lines[-1] == RECKONED
    assert RECKONED not in report(answer(use(), rows=(row,)), [])


def test_no_time_stands_alone_where_another_may_be_true() -> None:
    full = {"outlook": "full", "full_ms": NOW_MS + 48 * HOUR}
    soon = {"full_earliest_ms": NOW_MS + 4 * 60_000, "pace_over_ms": 6_000, "pace_day": 86_400 << 20}
    said = {
        text: verdict(answer(use("/d", **values)), [])
        for text, values in {
            "known": full,
            "a replica is not": full | {"growth_unknown": 1},
            "and fills now": full | soon | {"growth_unknown": 1},
            "only that": soon | {"outlook": "unknown"},
            "by its pace": {"outlook": "full", "full_ms": NOW_MS + 60_000, "pace_over_ms": 30_000},
            "full": {"outlook": "full", "full_ms": NOW_MS, "growth_unknown": 1},
        }.items()
    }
    assert said == {
        "known": "/d is full in 2d (2023-11-16T22:13:20Z)",
        "a replica is not": "/d is full in 2d (2023-11-16T22:13:20Z) at the latest",
        "and fills now": "/d is full in 2d (2023-11-16T22:13:20Z) at the latest, and in 4m (2023-11-14T22:17:20Z) if it goes on to fill as "
        "in the last 6s",
        "only that": "When /d is full is not known: in 4m (2023-11-14T22:17:20Z) if it goes on to fill as in the last 6s",
        "by its pace": "/d is full in 1m (2023-11-14T22:14:20Z), if it goes on to fill as in the last 30s",
        "full": "/d is full",
    }
    assert outlook(use(**full | soon, growth_day=900 << 20, again_day=800 << 20, frees_day=8 << 20), NOW_MS) == (
        "full in 2d (2023-11-16T22:13:20Z), or in 4m (2023-11-14T22:17:20Z) if it goes on to fill as now: it grows by 900.0 MiB a day, of "
        "which retention deletes 800.0 MiB again within the day, and retention frees 8.0 MiB of what is there within a day, and its disk "
        "fills by 1.0 MiB a second, as in the last 6s"
    )
