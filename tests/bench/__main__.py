"""Runs the benches, all of them or those named: ``python -m tests.bench [name...]``.

Each prints a table, and what its figures leave out. On a machine that does other work too the figures are rough, and ratios less so: they
are of measurements side by side.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable

from tests.bench import (
    agent,
    api,
    backlog,
    commands,
    disk,
    dump,
    first_page,
    fold,
    groups,
    idle,
    inventory,
    ladder,
    latency,
    memory,
    naive,
    pace,
    page,
    records,
    remote,
    render,
    replay,
    scale,
    scan,
    scrape,
    scrub,
    sizes,
    start,
    streams,
    transactions,
    trigger,
    turns,
)
from tests.bench.bounds import Bounds

BENCHES: dict[str, tuple[Callable[[Bounds], None], str]] = {
    "scan": (lambda _: scan.run(), "header scan against Kafka's own Java reader; needs a JDK"),
    "dump": (lambda _: dump.run(), "segtail dump against kafka-dump-log; needs a JDK"),
    "render": (lambda _: render.run(), "a scrape of 1,000,000 series"),
    "scrape": (lambda _: scrape.run(), "the same over HTTP, by one client and by several"),
    "api": (lambda _: api.run(), "what people ask a job of 10,000 partitions for, over HTTP"),
    "page": (lambda _: page.run(), "the page for people of a job with 10,000 partitions"),
    "sizes": (lambda _: sizes.run(), "series and bytes of a scrape by partitions and export options"),
    "trigger": (trigger.run, "the running job idle and with many active partitions"),
    "latency": (latency.run, "from an append to /metrics"),
    "pace": (lambda _: pace.run(), "the running job where a scraper comes every 15 s: cost, and how old what it sees is"),
    "first_page": (lambda _: first_page.run(), "the start of a job until its page has numbers, with an archive of classes and without"),
    "memory": (lambda _: memory.run(), "what each process of a running job holds"),
    "records": (lambda _: records.run(), "records of a broker's disk beside Spark's Kafka source, on a live broker"),
    "streams": (streams.run, "a micro-batch of the public stream beside one of our own packed rows"),
    "naive": (lambda _: naive.run(), "ours beside a plain job on Spark's Kafka source, on a live broker"),
    "backlog": (backlog.run, "the same two, on what lies there"),
    "remote": (remote.run, "many simulated agents: planning, TLS against plain, the job"),
    "commands": (commands.run, "what the commands on log dirs hold in memory"),
    "disk": (disk.run, "segtail disk on very many files"),
    "inventory": (inventory.run, "inventories of many logs with many segments, and the rules over them"),
    "ladder": (lambda _: ladder.run(), "the ladder of a log: to fill it, to keep it, to ask it, to grow it"),
    "groups": (lambda _: groups.run(), "consumer groups: rounds and pages of a million committed offsets"),
    "transactions": (transactions.run, "transactional batches through scan and fold, and very many open transactions"),
    "fold": (fold.run, "the fold alone, by columns and row by row"),
    "replay": (replay.run, "commits of consumer groups: their replay at the agent, and the job's store of them"),
    "scrub": (lambda _: scrub.run(), "the scrub's CPU for what it checks"),
    "turns": (turns.run, "the watcher alone, with many active partitions"),
    "start": (start.run, "the start of an agent by its number of logs, from nothing and from its journal"),
    "scale": (scale.run, "one agent with very many logs, one job with very many agents: what breaks first"),
    "idle": (idle.run, "an agent's threads beside very many logs in which nothing happens"),
    "agent": (agent.run, "the agent with many mostly idle partitions"),
}


_LEFT_OUT = re.compile(r"^Left out: (.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def left_out(name: str) -> str:
    """What the figures of a bench do not contain, as the docstring of its module has it; "" if it has nothing of it."""
    found = _LEFT_OUT.search((sys.modules[f"tests.bench.{name}"].__doc__ or "").strip())
    return " ".join(found[1].split()) if found else ""


def main() -> None:
    """Parse what to run, and run it."""
    names = "".join(f"\n  {name:12} {reported}\n{_indented(left_out(name), 15)}" for name, (_, reported) in BENCHES.items())
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=f"benches:{names}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = Bounds()
    parser.add_argument("name", nargs="*", help="which to run; all unless given")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="length of each measurement of a running job (%(default)s)")
    parser.add_argument("--active", type=int, default=default.active, help="partitions of the benches 'trigger' and 'turns' (%(default)s)")
    parser.add_argument("--agents", type=int, default=default.agents, help="agents of the benches 'remote' and 'scale' (%(default)s)")
    parser.add_argument("--partitions", type=int, default=default.partitions, help="partitions of each of them in 'remote' (%(default)s)")
    parser.add_argument(
        "--mostly-idle",
        type=int,
        default=default.mostly_idle,
        help="partitions of the benches 'agent', 'commands', 'disk', 'inventory' and 'start' (%(default)s)",
    )
    parser.add_argument(
        "--logs", type=int, default=default.logs, help="partitions of the bench 'scale', which has half of them, too (%(default)s)"
    )
    parser.add_argument(
        "--gigabytes", type=_gigabytes, default=default.gigabytes, help="sizes of the bench 'backlog', each a multiple of the first (2,6)"
    )
    given = parser.parse_args()
    unknown = [name for name in given.name if name not in BENCHES]
    if unknown:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    bounds = Bounds(**{name: value for name, value in vars(given).items() if name != "name"})
    for name in given.name or BENCHES:
        BENCHES[name][0](bounds)
        print(f"{_indented(left_out(name), 2)}\n")


def _gigabytes(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(",")))


def _indented(what: str, by: int) -> str:
    return textwrap.fill(f"left out: {what}", 120, initial_indent=by * " ", subsequent_indent=by * " ")


if __name__ == "__main__":
    main()
