"""Writes the dashboards, or with ``--check`` says which of those on disk are not current: ``python -m conf.dashboards.generator``."""

import argparse
import sys
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from conf.dashboards.generator.observer import observer
from conf.dashboards.generator.overview import overview
from conf.dashboards.generator.partition import partition
from conf.dashboards.generator.retention import retention
from conf.dashboards.generator.transactions import transactions

FOLDER = Path(__file__).parent.parent
DASHBOARDS = {
    "overview": overview,
    "transactions": transactions,
    "retention": retention,
    "partition": partition,
    "observer": observer,
}


def render(name: str) -> str:
    """The JSON of one dashboard."""
    made = DASHBOARDS[name]().build()
    for number, panel in enumerate(made.panels or (), 1):
        panel.id_val = number  # stable, so that a link to a panel outlives the next import
    return JSONEncoder(sort_keys=True, indent=2).encode(made) + "\n"


def main() -> int:
    """Write or compare; with ``--check``, 1 if any differs."""
    parser = argparse.ArgumentParser(prog="python -m conf.dashboards.generator", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name what is not current")
    check = parser.parse_args().check
    stale = []
    for name in DASHBOARDS:
        path = FOLDER / f"{name}.json"
        if check and (not path.exists() or path.read_text(encoding="utf-8") != render(name)):
            stale.append(path.name)
        elif not check:
            path.write_text(render(name), encoding="utf-8")
    if stale:
        sys.stderr.write(f"conf/dashboards: {', '.join(stale)} not current: make dashboards\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
