"""Hold alerts against the judge over many random worlds: ``python -m tests.alert_worlds [WORLDS] [FIRST]``, or ``make compare-alerts``."""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.alert_worlds.comparing import SUBJECTS, Comparison, compare
from tests.alert_worlds.group_worlds import group_world
from tests.alert_worlds.worlds import world

_AT_ONCE = 250
_GROUPS = 5  # one of so many worlds has groups, and nothing else that is wrong


def main() -> int:
    """Print each difference, and what was compared. Returns the exit status: 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.alert_worlds", description="Alerts against the judge, over random worlds.")
    parser.add_argument("worlds", nargs="?", type=int, default=100_000 // len(SUBJECTS), help="how many (%(default)s)")
    parser.add_argument("first", nargs="?", type=int, default=0, help="the first seed (%(default)s)")
    given = parser.parse_args()
    every = Comparison(compared=0)
    for first in range(given.first, given.first + given.worlds, _AT_ONCE):
        seeds = range(first, min(first + _AT_ONCE, given.first + given.worlds))
        with tempfile.TemporaryDirectory(prefix="segtail-alert-worlds-") as scratch:
            every += compare([group_world(seed) if seed % _GROUPS == 0 else world(seed) for seed in seeds], Path(scratch))
        print(f"{every.compared:,} comparisons, {len(every.differences):,} differ", flush=True)
    for each in every.differences:
        fires = "fires, and the judge finds nothing" if each.fires else "does not fire, and the judge finds a problem"
        print(f"seed {each.seed}: {each.alert} {fires}: {dict(sorted(each.subject))}")
    for kind, count in sorted(Counter({kind.name: 0 for kind in SUBJECTS} | every.agreed).items()):
        print(f"{kind}: {count:,} problems that its alert and the judge report alike")
    return 1 if every.differences else 0


if __name__ == "__main__":
    sys.exit(main())
