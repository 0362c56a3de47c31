"""One row has the same headings and cells on every face: on the page, in the terminal, in a command's table, and after JSON."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast, get_type_hints

import pytest
from click.testing import CliRunner

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.group_json import BatchCheck, GroupPage, HoldingTransaction, MovedOffset, PendingOffset
from streaming.broker.protocol.json_message import PublicMessage, Unit
from streaming.broker.protocol.listing_json import PartitionPage, RetentionPage, TransactionPage
from streaming.broker.protocol.status_json import CRITICAL, INFO, WARNING, Consequence, Cost, Status
from streaming.common.settings import Settings
from streaming.pages.api.state import State as JobState
from streaming.pages.listings.cells import plain
from streaming.pages.listings.declared_lists import COUNTS, DISK, GROUP_PARTITIONS, GROUPS, PARTITIONS, PROBLEMS, RETENTION, TRANSACTIONS
from streaming.pages.listings.listing import Cell, Listing, Times
from streaming.pages.listings.text_table import text_table
from streaming.pages.site.page_site import PageSite
from streaming.terminal.cli.app import segtail
from streaming.terminal.offline.everything import read_everything
from streaming.terminal.top.frame import laid_out
from streaming.terminal.top.questions import ListName, Row, Rows
from streaming.terminal.top.questions import ListQuestion as Question
from tests.site.page_reading import read
from tests.site.simulated_page import BUSY_MS, START, simulated_broker

NOW_MS = 1_700_000_000_000
PAGES = {"partitions": PartitionPage, "transactions": TransactionPage, "retention": RetentionPage, "groups": GroupPage}
ON_PAGE = {"partitions": PARTITIONS, "transactions": TRANSACTIONS, "retention": RETENTION, "groups": GROUPS}
IN_TERMINAL = {
    ListName.PROBLEMS: PROBLEMS,
    ListName.PARTITIONS: PARTITIONS,
    ListName.TRANSACTIONS: TRANSACTIONS,
    ListName.RETENTION: RETENTION,
    ListName.GROUPS: GROUPS,
}
EVERY = (*IN_TERMINAL.values(), GROUP_PARTITIONS, *COUNTS.values(), *DISK.values())

Table = list[dict[str, str]]


@dataclass(frozen=True)
class Shows:
    """A job that has these rows of one list, and nothing else."""

    list_name: str
    rows: Sequence[PublicMessage]

    def status(self) -> Status:
        return Status(at_ms=NOW_MS, version="0", ready=True, verdict="", freshness="")

    def __getattr__(self, name: str) -> Any:
        if name != self.list_name:
            raise AttributeError(name)
        counts = {"total": len(self.rows), "matched": len(self.rows), "offset": 0, "sort": "topic", "order": "asc"}
        return lambda query: PAGES[name](at_ms=NOW_MS, rows=cast(Any, self.rows), **cast(Any, counts))


NAMES = ("", "orders", "sp ace", "x\x1b[31m", "語", "<b>", "n" * 300)
VALUES: Mapping[object, Sequence[object]] = {
    int: (-1, 0, 1, 7, 4_096, 86_400_000, NOW_MS - 7_200_000, NOW_MS, NOW_MS + 60_000, 1 << 40),
    float: (-1.0, 0.0, 0.25, 9.96, 1234.5),
    bool: (False, True),
    str: NAMES,
    list[str]: ([], ["g"], ["a", "b c", "c", "d", "e"]),
    list[str] | None: ([], ["g"], ["a", "b c", "c", "d", "e"]),
    list[float]: ([], [-1.0, 0.0, 2.5]),
    HoldingTransaction | None: (None, HoldingTransaction(producer_id=1, producer_epoch=2, first_offset=3, start_ms=4, last_append_ms=5)),
    list[Consequence]: ([], [Consequence(text="group g: held up", severity=WARNING)] * 3),
    list[PendingOffset]: ([], [PendingOffset(producer_id=1, offset=2, coordinator=3)]),
    list[MovedOffset]: ([], [MovedOffset(kind="admin", from_offset=1, to_offset=2)]),
    BatchCheck | None: (None, BatchCheck(sound=True)),
}


def some_rows(listing: Listing, count: int = 50) -> list[PublicMessage]:
    """Rows of values that have all kinds of cells, the same in each run."""
    chance, hints = random.Random(listing.name), get_type_hints(listing.row)
    rows = []
    for _ in range(count):
        values = {each.name: chance.choice(VALUES[hints[each.name]]) for each in fields(listing.row)}
        for name in ("severity", "worst"):
            if name in values:
                values[name] = chance.choice(("", INFO, WARNING, CRITICAL))
        rows.append(listing.row(**values))
    return rows


def one_line(text: str) -> str:
    return " ".join(text.split())


def declared(listing: Listing, rows: Sequence[PublicMessage]) -> list[dict[str, Cell]]:
    return [{each.heading: each.cell_in(row, Times(NOW_MS)) for each in listing.columns} for row in rows]


def on_page(site: PageSite, path: str) -> Table:
    """The cells of the page's table, by their heads; pictures left out."""
    rows: Table = []
    for element in read(site, path).elements:
        if element.tag == "tr" and "role" in element.attributes:
            rows.append({})
        elif "data-head" in element.attributes:
            rows[-1][element.attributes["data-head"]] = one_line(element.text)
    return [row for row in rows if row]


def as_on_page(cell: Cell) -> str:
    """What the page writes of a cell: also its note, and the button beside a command."""
    if cell.command:
        command = cell.command.replace("\x1b", "\\u001b")
        return one_line(f"{command}Copy {plain(cell.note)}")
    if cell.groups:
        return one_line(f"{cell.text.removesuffix(cell.note)} {cell.note}")
    return one_line(plain(f"{cell.text} {cell.note}" if cell.partition is None else cell.text))


def in_terminal(view: ListName, rows: Sequence[PublicMessage]) -> Table:
    some = tuple(cast(Sequence[Row], rows))
    asked = Rows(question=Question(view=view), at_ms=NOW_MS, total=len(some), matched=len(some), offset=0, rows=some)
    columns, _, cells = laid_out(asked, some, Times(NOW_MS), 100_000)
    return [dict(zip((each.heading for each in columns), line, strict=True)) for line in cells]


def in_command(listing: Listing, rows: Sequence[PublicMessage]) -> Table:
    """A command's table, cut into its columns at where its heads begin or end."""
    head, *lines = text_table(listing, rows, Times(NOW_MS))
    assert re.split(r" {2,}", head.strip()) == [each.heading for each in listing.text_columns]
    return [{"": line} for line in lines]


@pytest.mark.parametrize("name", sorted(ON_PAGE))
def test_the_page_has_what_is_declared(name: str) -> None:
    listing = ON_PAGE[name]
    rows = some_rows(listing)
    wanted = [
        {each.heading: as_on_page(row[each.heading]) for each in listing.page_columns if each.unit is not Unit.CURVE}
        for row in declared(listing, rows)
    ]
    table = on_page(PageSite(cast(JobState, Shows(name, rows)), Cost), f"/{name}")
    assert [{head: text for head, text in row.items() if head in wanted[0]} for row in table] == wanted


@pytest.mark.parametrize("view", sorted(IN_TERMINAL))
def test_a_terminal_has_what_is_declared(view: str) -> None:
    listing = IN_TERMINAL[ListName(view)]
    rows = some_rows(listing)
    heads = [each.heading for each in listing.text_columns]
    assert in_terminal(ListName(view), rows) == [{head: plain(row[head].text) for head in heads} for row in declared(listing, rows)]


@pytest.mark.parametrize("listing", EVERY, ids=lambda each: each.name)
def test_a_command_s_table_and_json_have_what_is_declared(listing: Listing) -> None:
    rows = some_rows(listing)
    again = [listing.row.decode(json.dumps(row.fields()).encode()) for row in rows]
    assert declared(listing, again) == declared(listing, rows)
    for line, row in zip(in_command(listing, rows), declared(listing, rows), strict=True):
        rest = line[""]
        for each in listing.text_columns:
            before, text, rest = rest.partition(
                row[each.heading].text.rstrip() if each is listing.text_columns[-1] else row[each.heading].text
            )
            assert before.strip() == ""
            assert text == row[each.heading].text.rstrip() or text == row[each.heading].text
        assert rest == ""


@pytest.fixture(scope="module")
def log_dirs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ...]:
    return simulated_broker(tmp_path_factory.mktemp("faces"))


@pytest.fixture(scope="module")
def everything(log_dirs: tuple[Path, ...]) -> JobState:
    return read_everything(open_log_dirs(log_dirs), properties(log_dirs), START + BUSY_MS)


def properties(log_dirs: tuple[Path, ...]) -> Settings:
    return Settings(server_properties=(log_dirs[0].parent / "server.properties",))


def printed(log_dirs: tuple[Path, ...], *arguments: str) -> str:
    here = ["--log-dirs", ",".join(map(str, log_dirs)), "--server-properties", str(log_dirs[0].parent / "server.properties")]
    done = CliRunner().invoke(segtail, [arguments[0], *here, "--at", str(START + BUSY_MS), *arguments[1:]], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.stdout


def rows_of(text: str) -> list[Mapping[str, object]]:
    page = json.loads(text)
    assert {"at_ms", "version", "doubts", "total", "matched", "offset", "sort", "order"} <= page.keys()
    return sorted(page["rows"], key=lambda row: (row["topic"], row["partition"], row["broker"], row.get("first_offset", 0)))


@pytest.mark.parametrize("name", ["transactions", "retention"])
def test_of_the_same_log_dirs_command_terminal_and_api_have_the_same_rows(
    log_dirs: tuple[Path, ...], everything: JobState, name: str
) -> None:
    api = rows_of(getattr(everything, name)("limit=1000").encode().decode())
    assert api
    assert rows_of(printed(log_dirs, "top", "--once", "--json", "--limit", "1000", "--view", name)) == api
    alone = rows_of(printed(log_dirs, name, "--json"))
    # `retention` reads no transactions where none can hold back a deletion, and `transactions` no groups, nor what these lose by waiting
    unread = {"last_stable_offset", "held_groups"}
    kept = [row.keys() - unread - ({"advice"} if row.get("held_groups") else set()) for row in api]
    assert [{key: row[key] for key in keys} for row, keys in zip(alone, kept, strict=True)] == [
        {key: row[key] for key in keys} for row, keys in zip(api, kept, strict=True)
    ]
