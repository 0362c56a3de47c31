"""What the pictures are drawn from, and what is said where they cannot be drawn."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.dashboards.history import END, HANGING, TOPICS, Cluster
from tests.dashboards.panels import DASHBOARDS
from tests.dashboards.prometheus import Prometheus, serving
from tests.docs.running import sandbox
from tests.pictures.__main__ import SHOWN
from tests.pictures.page import SPAN, WIDTH, page
from tests.pictures.screen import screen_html
from tests.pictures.session import OUT as SESSION
from tests.pictures.session import session_svg
from tests.pictures.site import SCHEMES, VIEWS
from tests.site.simulated_page import simulated_state
from tests.tools import require_tool

HERE = Path(__file__).parent
SECONDS = 900
CLUSTER = Cluster(topics=TOPICS, seconds=SECONDS, step=30)

pytestmark = pytest.mark.xdist_group("pictures/test_pictures")  # one process starts Prometheus, not each


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    programs = require_tool("prometheus"), require_tool("promtool")
    with serving(programs, [CLUSTER], tmp_path_factory.mktemp("prometheus")) as found:
        yield found


def wrong(panel: dict[str, Any], width: int, height: int) -> list[str]:
    """What cannot be seen of a panel, or should not be."""
    box = panel["box"]
    series = panel["series"]
    faults = {
        "lies beside the page": box["left"] + box["width"] > width or box["top"] + box["height"] > height,
        "a variable in its title": "$" in panel["title"],
        "no data": not (panel["rows"] if panel["type"] == "table" else panel["type"] == "row" or series),
        "cells without a column": any(set(row) != set(panel["columns"]) for row in panel["rows"]),
        "a name that is not filled in": any("{{" in each["name"] for each in series),
        "times without values": any(len(each["times"]) != len(each["values"]) for each in series),
    }
    return [fault for fault, there in faults.items() if there]


def test_no_mark_of_the_time_axis_is_at_an_edge_where_grafana_cuts_its_label() -> None:
    half_an_hour = 1800
    assert [at % half_an_hour for at in (END, END - SPAN)] == [half_an_hour / 2] * 2


@pytest.mark.programs
@pytest.mark.parametrize("dashboard", DASHBOARDS)
def test_every_panel_has_its_data_and_lies_on_the_page(prometheus: Prometheus, dashboard: str) -> None:
    values = {"job": CLUSTER.job, "topic": HANGING[0], "partition": str(HANGING[1])} if dashboard == "partition" else {}
    content = json.loads(json.dumps(page(dashboard, prometheus, values, end=END, seconds=SECONDS)))
    assert content["width"] == WIDTH
    assert {panel["title"]: found for panel in content["panels"] if (found := wrong(panel, WIDTH, content["height"]))} == {}


def test_the_lock_names_no_host_and_pins_what_is_asked_for() -> None:
    lock = (HERE / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in lock
    packages = json.loads(lock)["packages"]
    assert all("integrity" in package for name, package in packages.items() if name)
    wanted = json.loads((HERE / "package.json").read_text(encoding="utf-8"))
    assert {name: wanted[name] for name in ("dependencies", "devDependencies")} == {
        name: packages[""][name] for name in ("dependencies", "devDependencies")
    }


@pytest.mark.parametrize(
    ("module", "missing"), [("tests.pictures", "npm, prometheus, promtool, chromium"), ("tests.pictures.site", "chromium, chromedriver")]
)
def test_what_is_missing_to_draw_is_named(tmp_path: Path, module: str, missing: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--out", tmp_path],
        env=os.environ | {"PATH": str(tmp_path)},
        cwd=HERE.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"pictures need {missing}" in done.stderr


@pytest.mark.programs
def test_the_page_is_drawn_light_and_dark_and_top_as_its_terminal_shows_it(tmp_path: Path) -> None:
    for program in ("chromium", "chromedriver"):
        require_tool(program)
    subprocess.run([sys.executable, "-m", "tests.pictures.site", "--out", tmp_path], cwd=HERE.parents[1], check=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(drawn) == ["group-dark.png", "group-light.png", "page-dark.png", "page-light.png", "top.png"]
    assert all(each.startswith(b"\x89PNG") for each in drawn.values())
    assert len(set(drawn.values())) == len(drawn)


def test_a_screen_has_the_words_and_the_styles_of_a_terminal(tmp_path: Path) -> None:
    html = screen_html(simulated_state(tmp_path), 100, 30)
    lines = [unescape(re.sub(r"<[^>]*>", "", line)).rstrip() for line in html.partition("<pre>")[2].partition("</pre>")[0].split("\n")]
    assert len(lines) == 30
    assert max(map(len, lines)) <= 100
    assert any(line.startswith("critical  Hanging transactions in topic invoices") for line in lines)
    (chosen,) = re.findall(r"background: ([^;]+); color: ([^;\"]+)[^>]*>\[1 problems\]", html)
    (body,) = re.findall(r"monospace; background: ([^;]+); color: ([^}]+) }", html)
    assert chosen == body[::-1], "what is chosen is in reverse"


def test_the_pictures_in_documents_are_those_that_are_drawn() -> None:
    drawn = {f"{name}-{scheme}.png" for name in VIEWS for scheme in SCHEMES} | {f"{name}.png" for name in SHOWN} | {"top.png"}
    root = HERE.parents[1]
    texts = [path.read_text(encoding="utf-8") for path in (root / "README.md", *(root / "docs").glob("*.md"))]
    drawn.add(SESSION.name)
    assert {path.name for path in (root / "docs" / "pictures").iterdir()} == drawn
    assert {name for text in texts for name in re.findall(r"pictures/([\w-]+\.(?:png|svg))", text)} == drawn


def test_the_session_is_what_the_commands_print_now(tmp_path: Path) -> None:
    assert session_svg(sandbox(tmp_path / "world")) == SESSION.read_text(encoding="utf-8"), "make pictures draws it anew"
