"""Draws the dashboards with Grafana's own components in a headless Chromium: ``python -m tests.pictures [dashboard...]``.

Their data comes from a real Prometheus: one that holds a made-up cluster's history, or with ``--prometheus`` any other. It is no proof that
Grafana loads a dashboard; it is what its panels look like.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.dashboards.history import HANGING, SMALL
from tests.dashboards.panels import DASHBOARDS
from tests.dashboards.prometheus import END, Prometheus, serving
from tests.limits import SECONDS
from tests.pictures.page import SPAN, page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "pictures"
SHOWN = {"clusters": 0, "overview": 0, "transactions": 0, "groups": 2}
"""Those that docs/dashboards.md shows, and so many rows of each, 0 for all."""
_QUIET = {"orders": 6, "inventory": 4, "sessions": 4}
OTHERS = (
    replace(SMALL, job="shop-us", seed=2, times_more=3, brokers=4),
    replace(SMALL, job="payments-eu", seed=3, times_more=0.4, topics=_QUIET, alerts=()),
    replace(SMALL, job="payments-us", seed=4, times_more=0.3, topics=_QUIET, alerts=()),
    replace(SMALL, job="logs-eu", seed=5, times_more=9, brokers=5, topics=_QUIET, alerts=(("LogDirFillingUp", "warning"),)),
    replace(SMALL, job="logs-us", seed=6, times_more=7, brokers=6, topics=_QUIET, alerts=()),
)
"""Clusters beside the one that the other dashboards show."""

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")

_HTML = """<!doctype html><html><meta charset="utf-8"><title>{title}</title><link rel="stylesheet" href="page.css">
<style>body {{ margin: 0; overflow: hidden }}</style><body><div id="root"></div>
<script>window.PAGE = {data}; window.__grafana_public_path__ = "";</script><script src="page.js"></script></html>
"""


def main() -> int:
    """Draw what was asked for; 2 where a program is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.pictures", description=__doc__)
    parser.add_argument("dashboard", nargs="*", help=f"of {', '.join(DASHBOARDS)}; those that docs/dashboards.md shows unless given")
    parser.add_argument("--prometheus", metavar="URL", help="where to ask; a made-up cluster's history unless given")
    parser.add_argument("--seconds", type=float, default=SPAN, help="how much time the pictures show (%(default)s)")
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a value of a variable, such as topic=orders")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures", help="folder for the pictures (%(default)s)")
    given = parser.parse_args()
    unknown = sorted(set(given.dashboard) - set(DASHBOARDS))
    if unknown:
        parser.error(f"no dashboard is called {', '.join(unknown)}; there are {', '.join(DASHBOARDS)}")
    missing = _missing(() if given.prometheus else ("prometheus", "promtool"))
    if missing:
        sys.stderr.write(f"pictures need {', '.join(missing)} (Debian: apt-get install chromium npm prometheus)\n")
        return 2
    _bundle()
    values = {"topic": HANGING[0], "partition": str(HANGING[1])} | dict(each.split("=", 1) for each in given.set)
    one = {"job": values["job"]} if "job" in values else {} if given.prometheus else {"job": SMALL.job}
    given.out.mkdir(parents=True, exist_ok=True)
    with _source(given.prometheus) as (prometheus, end):
        for dashboard in given.dashboard or SHOWN:
            chosen = one | values if dashboard == "partition" else {} if dashboard == "clusters" else one
            rows = 0 if given.dashboard else SHOWN[dashboard]
            _draw(page(dashboard, prometheus, chosen, end=end, seconds=given.seconds, rows=rows), given.out / f"{dashboard}.png")
            sys.stdout.write(f"{given.out / dashboard}.png\n")
    return 0


def _missing(more: tuple[str, ...]) -> list[str]:
    found = [name for name in ("npm", *more) if shutil.which(name) is None]
    return found if any(map(shutil.which, CHROMIUMS)) else [*found, "chromium"]


@contextmanager
def _source(url: str | None) -> Iterator[tuple[Prometheus, float]]:
    """A Prometheus, and the end of what the pictures show."""
    if url:
        yield Prometheus(url.rstrip("/")), time.time() // 60 * 60
        return
    server, tool = (Path(str(shutil.which(name))) for name in ("prometheus", "promtool"))
    with tempfile.TemporaryDirectory() as folder, serving((server, tool), (SMALL, *OTHERS), Path(folder)) as found:
        yield found, END


def _bundle() -> None:
    """Install Grafana's packages by the lock and pack the page; nothing of that where it is done."""
    BUILD.mkdir(parents=True, exist_ok=True)
    installed, made = BUILD / "node_modules" / ".package-lock.json", BUILD / "page.js"
    sources = [HERE / name for name in ("package.json", "page.tsx", "scrollbars.cjs")]
    lock = HERE / "package-lock.json"
    for source in (*sources, lock):
        shutil.copy(source, BUILD)
    if not _newer(installed, [lock]):
        subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], cwd=BUILD, check=True)
    if not _newer(made, [installed, *sources]):
        subprocess.run(["npm", "run", "--silent", "build"], cwd=BUILD, check=True)


def _newer(made: Path, sources: list[Path]) -> bool:
    return made.exists() and all(made.stat().st_mtime > source.stat().st_mtime for source in sources)


def _draw(content: dict[str, Any], path: Path) -> None:
    file = BUILD / f"{path.stem}.html"
    file.write_text(_HTML.format(title=content["title"], data=json.dumps(content).replace("</", "<\\/")), encoding="utf-8")
    chromium = next(found for found in map(shutil.which, CHROMIUMS) if found)
    with tempfile.TemporaryDirectory() as profile:
        drawn = subprocess.run(
            [
                *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"),
                *("--enable-logging=stderr", "--virtual-time-budget=8000", "--allow-file-access-from-files", f"--user-data-dir={profile}"),
                *(f"--window-size={content['width']},{content['height']}", f"--screenshot={path}", file.as_uri()),
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    errors = [line for line in drawn.stderr.splitlines() if "CONSOLE" in line and "Uncaught" in line]
    if errors:
        raise SystemExit(f"{path.stem} could not be drawn: {errors[0]}")


if __name__ == "__main__":
    sys.exit(main())
