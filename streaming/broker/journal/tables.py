"""Rows of a table as values: the fields of a row's class are its columns, by name, so that no order of columns is relied on."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar

from streaming.common.log_key import KEY

R = TypeVar("R")

OF_LOG = {name: f"log.{name}" for name in KEY}
"""The columns that name a log, and the attributes of a row that has a ``log``."""


class StoredTable(Generic[R]):
    """The statements that read and write whole rows. Every other statement is in the module that owns the table.

    Args:
        row: makes a row of the values of the columns, which it takes by their names.
        columns: the columns, and the attribute of a row that each is taken from; without any, those are the fields of ``row``, a dataclass.
    """

    def __init__(self, name: str, row: Callable[..., R], columns: dict[str, str] | None = None) -> None:
        attributes = columns or {field.name: field.name for field in fields(row)}  # type: ignore[arg-type]
        names = ", ".join(attributes)
        self._row = row
        self._columns = tuple(attributes)
        self._values = attrgetter(*attributes.values())
        self._select = f"SELECT {names} FROM {name}"
        self._into = f"INTO {name} ({names}) VALUES ({', '.join('?' * len(attributes))})"

    def all(self, run: sqlite3.Connection, rest: str = "", *values: object) -> Iterator[R]:
        """The rows that ``rest`` of the statement, WHERE and so on, selects; nothing may be written until the last one is read."""
        for found in run.execute(f"{self._select} {rest}", values):
            yield self._row(**dict(zip(self._columns, found, strict=True)))

    def first(self, run: sqlite3.Connection, rest: str = "", *values: object) -> R | None:
        """The first of these rows, None if there are none."""
        return next(self.all(run, f"{rest} LIMIT 1", *values), None)

    def insert(self, run: sqlite3.Connection, *rows: R) -> None:
        """Write new rows; one that is there already is an error."""
        self._write(run, "INSERT", rows)

    def add(self, run: sqlite3.Connection, *rows: R) -> None:
        """Write those rows that are not there yet."""
        self._write(run, "INSERT OR IGNORE", rows)

    def put(self, run: sqlite3.Connection, rows: Iterable[R]) -> None:
        """Write rows, in place of those that are there."""
        self._write(run, "INSERT OR REPLACE", rows)

    def _write(self, run: sqlite3.Connection, verb: str, rows: Iterable[R]) -> None:
        run.executemany(f"{verb} {self._into}", map(self._values, rows))


def value(run: sqlite3.Connection, sql: str, *values: object) -> Any:
    """The value that a statement selects, None if it selects no row."""
    found = run.execute(sql, values).fetchone()
    if found is None:
        return None
    (only,) = found
    return only


@cache
def equal(columns: tuple[str, ...]) -> str:
    """The condition that these columns have the values that are given with the statement."""
    return " AND ".join(f"{column} = ?" for column in columns)
