"""The command beside the exporter of a job, over HTTP: its real answers are what the screens are made of."""

import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from streaming.pages.listings.declared_lists import LISTS
from streaming.pages.site.exporter import Exporter
from streaming.terminal.cli.app import segtail
from streaming.terminal.cli.job_answers import ask
from streaming.terminal.top.answer_sources import JobSource
from streaming.terminal.top.questions import VIEWS, ListQuestion, Rows
from streaming.terminal.top.top_state import ScreenState, question
from streaming.terminal.top.watching import answered, pressed
from tests.ports import free_ports
from tests.top.screens import text
from tests.view.rows import log, new_observer, new_table

NAMES = ["orders", "a.b_c-d", "語", "sp ace", "a/b", "%2F", "x\x1b[31m"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    logs = [log(topic=name, partition=number, appended_bytes=5, end_offset=7) for name in NAMES for number in range(3)]
    exporter = Exporter("127.0.0.1", 0, table=new_table(*logs), observer=new_observer(), clock=time.time, healthy=lambda: True)
    exporter.start()
    yield exporter.url.removesuffix("/metrics")
    exporter.close()


def run(url: str, *options: str) -> Result:
    return CliRunner().invoke(segtail, ["top", "--job", url, *options], standalone_mode=False)


@pytest.fixture(scope="module")
def source(url: str) -> JobSource:
    return JobSource("the job", lambda path, kind: ask(url, path, kind))


def test_a_job_of_this_host_is_asked_without_a_proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (nobody,) = free_ports(1)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{nobody}")
    monkeypatch.delenv("no_proxy", raising=False)
    assert JobSource("the job", lambda path, kind: ask(url, path, kind)).ask(ListQuestion(view=VIEWS[0]), again=True).content


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_answered_and_sorted_by_every_letter(source: JobSource, view: str) -> None:
    for column in LISTS[view].text_columns:
        for descending in (True, False):
            asked = ListQuestion(
                view=next(each for each in VIEWS if each == view), sort=column.name if column.sort else "", descending=descending
            )
            rows = source.ask(asked, again=True).content
            assert isinstance(rows, Rows)
            assert (rows.sort, rows.descending) == (column.name, descending) or not column.sort


@pytest.mark.parametrize("number", range(len(NAMES)))
def test_a_partition_is_opened_whatever_its_name(source: JobSource, number: int) -> None:
    state = ScreenState(source="the job", height=60)
    keys = ["2", "P", *["down"] * (3 * number), "enter"]
    for key in ["", *keys]:
        state = pressed(state, key) if key else state
        state = answered(state, source.ask(question(state), again=True), 0.0)
    assert "last stable" in text(state)
    assert state.found is not None
    assert state.found.detail is not None


def test_the_list_is_printed_by_the_command(url: str) -> None:
    done = run(url, "--view", "partitions", "--filter", "orders-1")
    assert done.exception is None
    assert done.stdout.splitlines()[2] == "partitions: 1"
    assert done.stdout.splitlines()[3].startswith("partition: orders-1, ")


def test_groups_that_are_not_known_yet_take_nothing_from_the_rest(url: str) -> None:
    done = run(url, "--view", "groups")
    assert done.exception is None
    assert "groups: none known yet" in done.stdout
    assert "nothing is known of consumer groups yet" in done.stdout
