"""A plugin of pytest: the report of a failed test has the last words of what ran beside it, for it tells only what it has seen."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

LINES = 40
"""How many lines of a witness a report shows."""

_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Witness:
    """Something that runs beside a test. ``words`` tells how it is and what it said last, also after it has ended."""

    name: str
    words: Callable[[], str]
    alive: Callable[[], bool]


_witnesses: list[Witness] = []


def call(name: str, words: Callable[[], str], alive: Callable[[], bool]) -> None:
    """Whoever starts something calls it as a witness. It is one to the end of the test in which it ends."""
    _witnesses.append(Witness(name, words, alive))


def forget() -> None:
    """Let those go that have ended."""
    _witnesses[:] = [each for each in _witnesses if each.alive()]


def sections() -> list[tuple[str, str]]:
    """The name and the words of each, in the order in which they were started."""
    return [(each.name, _asked(each)) for each in _witnesses]


def waiting_by() -> str:
    """The same as one text, of those alone that run now: for a message of what was waited for."""
    return "".join(f"\n--- {each.name}\n{_asked(each)}" for each in _witnesses if each.alive())


def tail(path: Path, lines: int = LINES) -> str:
    """The last lines of a file that may be long, or may not be there."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _BYTES))
            text = file.read().decode(errors="replace")
    except OSError as error:
        return f"({error})"
    return "\n".join(text.splitlines()[-lines:])


def _asked(witness: Witness) -> str:
    try:
        return witness.words()
    except Exception as error:  # noqa: BLE001 - one that cannot tell must not hide what the others say
        return f"(it does not tell: {error!r})"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections += sections()
    return report


def pytest_runtest_logfinish() -> None:
    forget()
