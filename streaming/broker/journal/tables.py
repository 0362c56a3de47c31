"""Rows of a table as values."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any, Generic, TypeVar, get_type_hints

R = TypeVar("R")


class StoredTable(Generic[R]):
    """The statements that read and write whole rows. Every other statement is in the module that owns the table.

    The columns are the fields of a row's class, by their names, so that no order of columns is relied on. A field that is a tuple with
    names, such as the key of a log, has a column for each of its own.
    """

    def __init__(self, name: str, row: Callable[..., R]) -> None:
        hints = get_type_hints(row)
        names: Sequence[str] = getattr(row, "_fields", None) or [each.name for each in fields(row)]  # type: ignore[arg-type]
        parts = [(each, getattr(hints[each], "_fields", ())) for each in names]
        attributes = {own or each: f"{each}.{own}" if own else each for each, owns in parts for own in owns or ("",)}
        self._name, self._row = name, row
        self._parts = [(at, hints[each], at + len(owns)) for at, (each, owns) in enumerate(parts) if owns]
        self._values = attrgetter(*attributes.values())
        self._select = f"SELECT {', '.join(attributes)} FROM {name}"
        self._into = f"INTO {name} ({', '.join(attributes)}) VALUES ({', '.join('?' * len(attributes))})"

    def all(self, run: sqlite3.Connection, rest: str = "", *values: object) -> Iterator[R]:
        """The rows that ``rest`` of the statement, WHERE and so on, selects; nothing may be written until the last one is read."""
        for found in run.execute(f"{self._select} {rest}", values):
            for begin, kind, end in self._parts:
                found = (*found[:begin], kind(*found[begin:end]), *found[end:])
            yield self._row(*found)

    def first(self, run: sqlite3.Connection, rest: str = "", *values: object) -> R | None:
        """The first of these rows, None if there are none."""
        return next(self.all(run, f"{rest} LIMIT 1", *values), None)

    def insert(self, run: sqlite3.Connection, *rows: R) -> None:
        """Write new rows; one that is there already is an error."""
        self._write(run, "INSERT", rows)

    def put(self, run: sqlite3.Connection, rows: Iterable[R]) -> None:
        """Write rows, in place of those that are there."""
        self._write(run, "INSERT OR REPLACE", rows)

    def remove(self, run: sqlite3.Connection, columns: tuple[str, ...], keys: Iterable[Sequence[object]]) -> None:
        """Delete the rows whose columns have these values."""
        run.executemany(f"DELETE FROM {self._name} WHERE {equal(columns)}", keys)

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
