"""Runs that take long, each with a table and a verdict: ``python -m bench.soak [NAME]``."""

import argparse
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

from bench.measuring import show
from bench.soak import away, beside, fleet, hunt, moving, sampling, steady
from streaming.broker.journal.journal import MOST_BYTES
from streaming.common.units import parse_size
from tests.broker.install import BROKER_VERSION
from tests.broker.kafka import CONTROLLER_ID, Kafka
from tests.broker.kills import run_kills
from tests.broker.restarts import KINDS, ROBUST, Outcomes, Restarts
from tests.operations.cluster import Cluster, cluster
from tests.operations.day import Outcome, run_events
from tests.operations.events import COMBINED, EVENTS

_Taken = TypeVar("_Taken")


def main() -> int:
    """Parse what to run, run it, print the tables and the verdicts."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description="runs that take long, each with a table and a verdict")
    parser.add_argument("name", nargs="*", help=f"which to run, of {', '.join(PARTS)}; all unless given")
    parser.add_argument("--kills", type=int, default=1000, help="how many processes are killed (%(default)s)")
    parser.add_argument("--child", action="store_true", help="the agent that is killed is the job's own (segtail run --log-dirs)")
    parser.add_argument(
        "--minutes",
        type=float,
        default=30,
        help="length of the steady run, of those of groups, logs and a job that is away, and of the hunt (%(default)s)",
    )
    parser.add_argument("--comparisons", type=int, default=0, help="those of groups and logs end when so much was compared")
    parser.add_argument("--release", default=BROKER_VERSION, help="of Kafka, for these two (%(default)s)")
    parser.add_argument("--partitions", type=int, default=10_000, help="its partitions (%(default)s)")
    parser.add_argument("--active", type=int, default=1_000, help="of which so many are appended to (%(default)s)")
    parser.add_argument("--appends", type=int, default=1_000, help="appends a second, over all of these (%(default)s)")
    parser.add_argument("--backlog", type=parse_size, default=20 << 30, help="the backlog in its middle (20GiB)")
    parser.add_argument("--read", type=parse_size, default=4 << 30, help="the backlog of the page cache's measurement (4GiB)")
    parser.add_argument(
        "--kept", type=parse_size, default=MOST_BYTES, help="events that the agent of a job that is away keeps (64MiB, as any agent)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of producing with and without an agent (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="of each of these (%(default)s)")
    parser.add_argument("--factor", type=int, default=4, help="all times of alerts are divided by it in a day of operations (%(default)s)")
    parser.add_argument("--states", type=int, default=200, help="in which a restart is judged and made (%(default)s)")
    parser.add_argument("--events", type=re.compile, default=re.compile(""), help="a regular expression: only these events of that day")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32), help="repeats choices; moments stay random")
    given = parser.parse_args()
    if unknown := set(given.name) - set(PARTS):
        parser.error(f"nothing is called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    print(f"seed {given.seed}", flush=True)
    failed = [name for name in PARTS if name in (given.name or PARTS) and not _run(name, PARTS[name], given)]
    return 1 if failed else 0


def _run(name: str, run: Callable[[Path, argparse.Namespace], Sequence[str]], given: argparse.Namespace) -> bool:
    directory = Path(tempfile.mkdtemp(prefix=f"segtail-{name}-"))
    problems = run(directory, given)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{name}: FAILED, {len(problems)} problems, seed {given.seed}; files in {directory}", flush=True)
        return False
    shutil.rmtree(directory)
    print(f"{name}: PASSED", flush=True)
    return True


def _kills(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    report = run_kills(directory, given.kills, given.seed, child=given.child)
    rows = [(f"kill -9 of: {part}", f"{count:,}") for part, count in sorted(report.kills.items())]
    rows += [
        ("kills together", f"{sum(report.kills.values()):,}"),
        ("records written", f"{report.records:,}"),
        ("pages scraped", f"{report.scrapes:,}"),
        ("longest time without a page, s", f"{report.absent_seconds:.0f}"),
        ("minutes", f"{report.seconds / 60:.1f}"),
        ("numbers that differ, or stepped back", f"{len(report.problems)}"),
    ]
    show(f"kills under a real broker's load, seed {given.seed}", ("", ""), rows)
    return report.problems


def _steady(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    plan = steady.Plan(
        minutes=given.minutes,
        partitions=given.partitions,
        active=given.active,
        appends_a_second=given.appends,
        backlog_bytes=given.backlog,
        seed=given.seed,
    )
    report = steady.run_steady(directory, plan)
    written = report.written
    heads = ("", "at first", "highest", "at last", "growth in the 2nd half", "")
    show(f"{given.minutes:g} minutes, {given.partitions:,} partitions, {report.samples} samples", heads, sampling.lines(report.trends))
    backlog_rate = written.backlog / report.backlog_seconds / 1e6 if report.backlog_seconds else 0.0
    rows = [
        ("appends", f"{written.appends:,}"),
        ("rolls, each with a segment deleted", f"{written.rolls:,}"),
        (f"topics of {fleet.CHURNED} partitions made / deleted", f"{written.topics_made:,} / {written.topics_deleted:,}"),
        ("seconds until all that was there was on the page", f"{report.start_seconds:.0f}"),
        (f"seconds until a backlog of {written.backlog / 2**30:.1f} GiB was on the page", f"{report.backlog_seconds:.0f}"),
        ("MB a second of it", f"{backlog_rate:.0f}"),
        ("longest tail lag outside of it, s", f"{report.lag_seconds:.1f}"),
    ]
    show("what happened meanwhile", ("", ""), rows)
    return report.problems


def _beside(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    report = beside.run_beside(directory, given.rounds, given.seconds, given.read)
    rows = [
        (
            name,
            f"{sum(each.sends for each in waits):,}",
            *(" ".join(f"{getattr(each, what):.2f}" for each in waits) for what in ("p50", "p99")),
        )
        for name, waits in (("without an agent", report.without), ("an agent beside", report.beside))
    ]
    title = f"ms until a send with acks=all is acknowledged, {beside.SENDS_A_SECOND} a second, {given.rounds} rounds in turn"
    show(title, ("", "sends", "p50 of each round", "p99 of each round"), rows)
    rows = [
        (f"newest segments, {report.hot_bytes / 1e6:,.0f} MB", *(f"{each.hot / 1e6:,.0f}" for each in (report.before, report.after))),
        ("older segments", *(f"{each.cold / 1e6:,.0f}" for each in (report.before, report.after))),
    ]
    pace = f"{report.backlog_bytes / 1e6:,.0f} MB in {report.backlog_seconds:.0f} s"
    show(f"MB of segments in the page cache, before and after an agent read {pace}", ("", "before", "after"), rows)
    if beside.is_disturbed(report):
        return [
            "not judged: this machine takes pages out of its page cache without any reader, so what an agent leaves there cannot be seen"
        ]
    return beside.problems_of(report)


def _operations(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    rows, problems = [], []
    for each in _outcomes(directory, given):
        problems += each.problems
        rows.append((each.name, f"{each.seconds:.0f}", "; ".join(each.problems).replace(f"{each.name}: ", "") or "as documented"))
        print(*rows[-1], sep=": ", flush=True)
    show(f"what fired in a day of operations, all times of alerts divided by {given.factor}", ("event", "s", ""), rows)
    return problems


def _outcomes(directory: Path, given: argparse.Namespace) -> Iterator[Outcome]:
    numbers = count(1)

    def make(*, combined: bool = False) -> AbstractContextManager[Cluster]:
        return cluster(directory / f"cluster-{next(numbers)}", given.factor, combined=combined)

    def taken(events: Mapping[str, _Taken]) -> dict[str, _Taken]:
        return {name: event for name, event in events.items() if given.events.search(name)}

    yield from run_events(make, taken(EVENTS))
    yield from run_events(partial(make, combined=True), taken(COMBINED))


def _moving(
    run: Callable[[Path, moving.Moving], moving.Counted], what: str, title: str, directory: Path, given: argparse.Namespace
) -> Sequence[str]:
    shown: set[str] = set()

    def show_counts(counted: moving.Counted) -> None:
        total = moving.total_of(counted)
        new = [each for each in total.differ if each not in shown]
        shown.update(new)
        print(*new, sep="\n", end="\n" if new else "", flush=True)
        print(f"compared {total.compared:,}, differ {len(total.differ):,}, answered {total.answered:.2%}", flush=True)

    plan = moving.Moving(version=given.release, minutes=given.minutes, compared=given.comparisons, seed=given.seed, show_counts=show_counts)
    counted = run(directory, plan)
    heads = ("", f"{what} compared", "differ", "answered where the log is current", "not known")
    show(f"{title}, Kafka {given.release}, seed {given.seed}", heads, [*moving.table_of(counted)])
    return moving.problems_of(counted)


def _hunt(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    report = hunt.run_hunt(directory, given.minutes, given.seed)
    rows = [
        *((name, f"{count:,}") for name, count in sorted(report.operations.items())),
        ("numbers compared at rest", f"{report.compared:,}"),
    ]
    show(f"operations drawn on a real broker and on segtail, seed {given.seed}", ("", ""), rows)
    return report.problems


def _away(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    plan = away.Plan(minutes=given.minutes, partitions=given.active, appends_a_second=given.appends, kept_bytes=given.kept, seed=given.seed)
    report = away.run_away(directory, plan)
    rows = [
        (each.how, f"{each.seconds:.0f}", f"{each.records:,}", f"{each.events:,}", "yes" if each.kept else "no", f"{each.back_seconds:.0f}")
        for each in report.absences
    ]
    heads = ("", "s", "records written meanwhile", "events of the agent", "kept by it", "s until all was counted")
    show(f"a job that is away, {plan.partitions:,} partitions, seed {plan.seed}", heads, rows)
    rows = [
        ("records", f"{report.records:,}"),
        ("transactions that ended in a partition", f"{report.transactions:,}"),
        ("numbers of a page compared", f"{report.compared:,}"),
    ]
    show("all together", ("", ""), rows)
    return report.problems


def _restarts(directory: Path, given: argparse.Namespace) -> Sequence[str]:
    """Half of the states with topics that can do with a broker less."""
    every = Outcomes()
    kafka = Kafka(directory, 3, {"replica.high.watermark.checkpoint.interval.ms": 500}, controller=True, heap_mb=256)
    try:
        kafka.start(CONTROLLER_ID)
        kafka.start(*kafka.down)
        for number in range(0, given.states, 10):
            with Restarts(kafka, given.seed + number, ROBUST if number // 10 % 2 else KINDS, every) as restarts:
                restarts.run(min(10, given.states - number))
            print(f"{sum(every.states.values())} states, {len(every.problems)} problems", flush=True)
    finally:
        kafka.kill()
    rows = [*sorted(every.states.items()), *sorted(every.verdicts.items()), ("sets of partitions compared", every.compared)]
    show(f"restarts that were judged before, seed {given.seed}", ("", ""), [(name, f"{count:,}") for name, count in rows])
    return every.problems


PARTS: dict[str, Callable[[Path, argparse.Namespace], Sequence[str]]] = {
    "steady": _steady,
    "beside": _beside,
    "kills": _kills,
    "operations": _operations,
    "groups": partial(_moving, moving.run_groups, "committed offsets", "groups that commit while their coordinators move"),
    "logs": partial(_moving, moving.run_logs, "answers", "logs that grow while their leaders move"),
    "hunt": _hunt,
    "away": _away,
    "restarts": _restarts,
}

if __name__ == "__main__":
    sys.exit(main())
