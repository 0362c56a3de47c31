"""A table of cases as one test, whose failure names every row that is wrong, not the first one alone."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest

_ROW_CHARS = 300
_Named = type(pytest.param())


def each_row(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Calls the test with each row, as ``pytest.mark.parametrize`` does, but in one test: rows of a large table take next to no time.

    For what needs no fixture that a row changes: all rows share them. A row may have a name: ``pytest.param(1, 2, id="its name")``.
    """
    single = isinstance(names, str) and "," not in names
    columns = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    named = [(row.values, row.id) if isinstance(row, _Named) else ((row,) if single else tuple(row), None) for row in rows]
    table = [(row, name or repr(row[0] if single else row)[:_ROW_CHARS]) for row, name in named]
    assert table, "a table without rows shows nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def of_all(*args: Any, **fixtures: Any) -> None:
            wrong, skipped = list[Exception](), list[BaseException]()
            for row, shown in table:
                try:
                    test(*args, **dict(zip(columns, row, strict=True)), **fixtures)
                except pytest.skip.Exception as lacking:
                    skipped.append(lacking)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # of a row, whatever it is; they are raised together
                    wrong.append(error if isinstance(error, Exception) else AssertionError(str(error)))
                    wrong[-1].add_note(shown)
            if wrong:
                rows_of_them = "; ".join(each.__notes__[-1] for each in wrong)
                raise ExceptionGroup(f"{len(wrong)} of {len(table)} rows are wrong: {rows_of_them}", wrong)
            if skipped:
                raise skipped[0]

        rest = [each for name, each in signature.parameters.items() if name not in columns]
        of_all.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return of_all

    return decorate
