"""Runbooks by the names of their alerts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from posixpath import normpath

from streaming.errors import UsageError
from streaming.shipped.shipped_files import ShippedKind, shipped

INDEX = "README"
"""The file that lists all runbooks."""

_ROW = re.compile(r"(?m)^\| \[(\w+)\]\(\1\.md\) \| ([\w ]+) \| (.+) \|$")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def runbook_of(name: str) -> Runbook:
    """The runbook of this name, in whichever case.

    Raises:
        UsageError: there is none; it names those with similar names.
    """
    by_lower = {each.name.lower(): each for each in runbooks()}
    asked = name.removesuffix(".md").lower()
    if asked in by_lower:
        return by_lower[asked]
    holding = [each for each in by_lower if asked and asked in each]
    near = [by_lower[each].name for each in (get_close_matches(asked, by_lower, n=3) or holding[:3])]
    hint = f", did you mean {' or '.join(near)}?" if near else ": `segtail runbook` lists them"
    raise UsageError(f"there is no runbook {name if name.isprintable() else ascii(name)}{hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """What to do about an alert, as Markdown."""

    name: str
    text: str

    @property
    def printed(self) -> str:
        """The same with names in place of links: of another runbook, or of a file of the project."""
        return _LINK.sub(_named, self.text)


def _named(link: re.Match[str]) -> str:
    text, target = link.groups()
    if "/" not in target:
        name = target.removesuffix(".md")
    else:
        name = target if "://" in target else normpath(f"docs/runbooks/{target}")
    return name if text in name else f"{text} ({name})"


def runbooks() -> tuple[Runbook, ...]:
    """All runbooks, by name."""
    return tuple(Runbook(name=each.stem, text=each.text) for each in shipped(ShippedKind.RUNBOOKS) if each.stem != INDEX)


def entries() -> tuple[Entry, ...]:
    """The lines of the list, in its order: what belongs together is together."""
    rows = _ROW.findall(runbook_index().text)
    return tuple(Entry(name=name, severity=severity, meaning=meaning.replace("`", "")) for name, severity, meaning in rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of the list of runbooks: the alert, what it means in a few words, and how severe it is.

    ``severity``: "critical or warning" where circumstances decide.
    """

    name: str
    severity: str
    meaning: str


def runbook_index() -> Runbook:
    """The list of all runbooks with the severities of their alerts."""
    (index,) = (each for each in shipped(ShippedKind.RUNBOOKS) if each.stem == INDEX)
    return Runbook(name="Runbooks", text=index.text)


def find_runbook(name: str) -> Runbook | None:
    """The runbook of this name, which may also be that of its file; None if there is none."""
    return next((each for each in runbooks() if each.name == name.removesuffix(".md")), None)
