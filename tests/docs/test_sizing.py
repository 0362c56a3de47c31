"""docs/sizing.md holds measured figures alone: each stands in the section of its bench in docs/internals/benchmarks.md."""

import re

from tests.docs.documented import ROOT
from tests.tables import each_row

BENCHMARKS = (ROOT / "docs" / "internals" / "benchmarks.md").read_text(encoding="utf-8")
SCRUB = (ROOT / "docs" / "scrub.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (?P<what>[^|]+) \| (?P<measured>[^|]+) \| (?P<bench>[a-z]+) \|$", re.MULTILINE)
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
ROWS = [row for row in _ROW.finditer((ROOT / "docs" / "sizing.md").read_text(encoding="utf-8")) if row["bench"] != "bench"]


def section(bench: str) -> str:
    """What is said of a bench."""
    if bench == "scrub":
        return SCRUB
    (found,) = re.findall(rf"^## (?:{'naive' if bench == 'backlog' else bench}): .*?(?=^## |\Z)", BENCHMARKS, re.MULTILINE | re.DOTALL)
    return str(found)


@each_row("row", ROWS)
def test_a_figure_is_one_that_its_bench_has_shown(row: re.Match[str]) -> None:
    shown = set(_NUMBER.findall(section(row["bench"])))
    assert [number for number in _NUMBER.findall(row["measured"]) if number not in shown] == []


def test_most_of_the_page_is_figures() -> None:
    assert len(ROWS) > 25
