"""Rows come by the names of their columns."""

import sqlite3
from dataclasses import dataclass
from typing import NamedTuple

import pytest

from streaming.broker.journal.tables import StoredTable, equal, value


@dataclass(frozen=True, slots=True)
class Fruit:
    name: str
    count: int


FRUITS = StoredTable("fruits", Fruit)


@pytest.fixture(params=["name TEXT PRIMARY KEY, count INTEGER", "count INTEGER, more BLOB, name TEXT PRIMARY KEY"])
def run(request: pytest.FixtureRequest) -> sqlite3.Connection:
    """A table as it is made, or as upgrades have left it: in another order, and with a column that nobody knows."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"CREATE TABLE fruits ({request.param})")
    return connection


def test_what_is_written_is_read_whatever_the_order_of_columns(run: sqlite3.Connection) -> None:
    FRUITS.insert(run, Fruit("fig", 3), Fruit("pear", 1))
    assert list(FRUITS.all(run, "WHERE count > ? ORDER BY name", 0)) == [Fruit("fig", 3), Fruit("pear", 1)]
    assert FRUITS.first(run, "ORDER BY count") == Fruit("pear", 1)
    assert FRUITS.first(run, f"WHERE {equal(('name', 'count'))}", "fig", 4) is None


def test_a_row_that_is_there_is_replaced_or_an_error(run: sqlite3.Connection) -> None:
    FRUITS.insert(run, Fruit("fig", 1))
    FRUITS.put(run, [Fruit("fig", 3)])
    assert FRUITS.first(run) == Fruit("fig", 3)
    with pytest.raises(sqlite3.IntegrityError):
        FRUITS.insert(run, Fruit("fig", 4))


class Name(NamedTuple):
    name: str


@dataclass(frozen=True, slots=True)
class Counted:
    fruit: Name
    count: int


def test_a_row_may_have_its_columns_in_parts(run: sqlite3.Connection) -> None:
    table = StoredTable("fruits", Counted)
    table.put(run, [Counted(Name("fig"), 3), Counted(Name("pear"), 1)])
    table.remove(run, ("name",), [Name("pear")])
    assert list(table.all(run)) == [Counted(Name("fig"), 3)]


def test_one_value_or_none(run: sqlite3.Connection) -> None:
    assert value(run, "SELECT count FROM fruits") is None
    FRUITS.insert(run, Fruit("fig", 3))
    assert value(run, "SELECT count FROM fruits WHERE name = ?", "fig") == 3
