"""Runs the benches, all of them or those named: ``python -m bench [name...]``.

Each prints a table, and what its figures leave out. On a machine that does other work too the figures are rough, and ratios less so: they
are of measurements side by side.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable

from bench import (
    agent,
    backlog,
    calls,
    commands,
    dump,
    first_page,
    groups,
    inventory,
    ladder,
    memory,
    naive,
    pace,
    positions,
    replay,
    scale,
    scan,
    scrape,
    scrub,
    sizes,
    start,
    turns,
)
from bench.measuring import Bounds

_WITH_A_JDK = (scan, dump, ladder)
_OF_A_JOB = (pace, memory, first_page, agent, naive, backlog, scale)
_OF_AN_AGENT = (turns, start, calls, inventory, replay, scrub, positions)
_OF_PAGES_AND_COMMANDS = (sizes, scrape, groups, commands)

BENCHES: dict[str, Callable[[Bounds], None]] = {
    each.__name__.rpartition(".")[2]: each.run for each in (*_WITH_A_JDK, *_OF_A_JOB, *_OF_AN_AGENT, *_OF_PAGES_AND_COMMANDS)
}
_LEFT_OUT = re.compile(r"^Left out: (.*?)(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def _described(name: str) -> str:
    """The first line of what its module says of it, and what its figures leave out."""
    text = (sys.modules[BENCHES[name].__module__].__doc__ or "").strip()
    return f"\n  {name:12} {text.partition(chr(10))[0]}\n{_left_out(name, 15)}"


def _left_out(name: str, by: int) -> str:
    (found,) = _LEFT_OUT.findall(sys.modules[BENCHES[name].__module__].__doc__ or "")
    what = f"left out: {' '.join(found.split())}"
    return textwrap.fill(what, 120, initial_indent=by * " ", subsequent_indent=by * " ")


def main() -> None:
    """Parse what to run, and run it."""
    described = f"benches:{''.join(map(_described, BENCHES))}"
    parser = argparse.ArgumentParser(prog="python -m bench", description=described, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Bounds()
    parser.add_argument("name", nargs="*", help="which to run; all unless given")
    parser.add_argument("--seconds", type=float, default=default.seconds, help="length of each measurement of a running job (%(default)s)")
    parser.add_argument("--active", type=int, default=default.active, help="partitions of the bench 'turns' (%(default)s)")
    parser.add_argument("--agents", type=int, default=default.agents, help="agents of the bench 'scale' (%(default)s)")
    parser.add_argument("--logs", type=int, default=default.logs, help="partitions of 'scale', which has half of them, too (%(default)s)")
    where = "partitions of 'agent', 'commands', 'inventory' and 'start' (%(default)s)"
    parser.add_argument("--mostly-idle", type=int, default=default.mostly_idle, help=where)
    sizes_of = "sizes of the bench 'backlog', each a multiple of the first (2,6)"
    parser.add_argument("--gigabytes", type=lambda text: tuple(map(float, text.split(","))), default=default.gigabytes, help=sizes_of)
    given = vars(parser.parse_args())
    names = given.pop("name") or list(BENCHES)
    if unknown := [name for name in names if name not in BENCHES]:
        parser.error(f"no bench is called {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    for name in names:
        BENCHES[name](Bounds(**given))
        print(f"{_left_out(name, 2)}\n")


if __name__ == "__main__":
    main()
