"""The page for people."""

from dataclasses import replace
from html.parser import HTMLParser

from streaming.metrics.observer import AgentStatus
from streaming.metrics.page import TOP, write_page
from streaming.metrics.view import view
from streaming.protocol.status_messages import BlockedFile, UnreadableLog, UnreadableLogs
from tests.metrics.rows import Row, log, new_table


class Cells(HTMLParser):
    """The texts of a page's table cells, and where its links go."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.links: list[str | None] = []
        self._in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_cell = tag == "td"
        if tag == "td":
            self.cells.append("")
        if tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.cells[-1] += data.rstrip("\n")


def cells(*rows: Row, agents: tuple[AgentStatus, ...] = ()) -> Cells:
    return Cells(write_page(view(new_table(*rows).snapshot(0.0)), agents, ready=True).decode())


def test_links_to_everything_that_is_served() -> None:
    assert cells().links == ["metrics", "-/healthy", "-/ready"]


def test_agents_are_told_with_their_brokers_and_how_they_are() -> None:
    agents = (
        AgentStatus(name="a1", up=True, brokers=(1, 2)),
        AgentStatus(name="a2", up=True, brokers=(3,), catching_up=True),
        AgentStatus(name="a3", up=False, catching_up=True),
        AgentStatus(name="a4", up=False, problems=("refused",)),
    )
    told = ["a1", "1, 2", "up", "a2", "3", "catching up", "a3", "", "down", "a4", "", "down (refused)"]
    assert cells(agents=agents).cells == told


def test_a_file_that_does_not_answer_is_named() -> None:
    agents = (AgentStatus(name="a1", up=True, brokers=(1,), blocked=(BlockedFile(1, "/d1", "/d1/t-0/0.log", 34.4),)),)
    page = write_page(view(new_table().snapshot(0.0)), agents, ready=True).decode()
    assert "Log dir /d1 of broker 1 does not answer and is not watched: a call to /d1/t-0/0.log has not come back for 34s." in page


def test_logs_that_cannot_be_read_are_named_while_their_agent_is_up() -> None:
    logs = tuple(UnreadableLog(1, f"t{number}", 0, "", f"/d1/t{number}-0/0.log", "Input/output error") for number in range(TOP + 3))
    agent = AgentStatus(name="a1", up=True, brokers=(1,), unreadable=(UnreadableLogs(1, TOP + 30),), unreadable_logs=logs)
    page = write_page(view(new_table().snapshot(0.0)), (agent, replace(agent, name="a2", up=False)), ready=True).decode()
    assert page.count("cannot be read") == TOP + 1
    assert "Partition t0-0 of broker 1 cannot be read: /d1/t0-0/0.log: Input/output error." in page
    assert "Of agent a1, 30 more partitions cannot be read." in page


def test_the_partitions_with_most_bytes_come_first_and_only_those() -> None:
    rows = [log(partition=number, appended_bytes=1000 * number, appended_records=number, log_end_offset=7) for number in range(TOP + 5)]
    found = cells(*rows).cells
    assert found[:4] == ['{broker="1",topic="orders",partition="24"}', "23.4 KiB", "24", "7"]
    assert len(found) == 4 * TOP


def test_names_are_text_and_never_markup() -> None:
    agents = (AgentStatus(name="<script>alert(1)</script>", up=True),)
    page = write_page(view(new_table(log("<b>&amp;</b>")).snapshot(0.0)), agents, ready=True).decode()
    assert "<script>" not in page
    assert "<b>" not in page
    assert Cells(page).cells[0] == "<script>alert(1)</script>"


def test_logs_and_partitions_are_counted_and_a_picture_that_is_missing_is_told() -> None:
    shown = view(new_table(log(broker=1), log(broker=2), log("other")).snapshot(0.0))
    assert "2 partitions of 3 observed logs" in write_page(shown, (), ready=True).decode()
    assert "on its way" in write_page(shown, (), ready=False).decode()
    assert "on its way" not in write_page(shown, (), ready=True).decode()
