"""The files that come with segtail: in a checkout links to `conf/` and `docs/runbooks/`, in a wheel copies of these."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


@cache
def shipped(kind: ShippedKind) -> tuple[ShippedFile, ...]:
    """All files of a kind, by name."""
    folder = files("streaming.shipped").joinpath("files", kind)
    found = (ShippedFile(name=each.name, text=each.read_text(encoding="utf-8")) for each in folder.iterdir() if each.is_file())
    return tuple(sorted(found, key=lambda each: each.name))


class ShippedKind(StrEnum):
    """What a file is for, by the name of its folder."""

    ALERTS = "alerts"
    RULES = "rules"
    DASHBOARDS = "dashboards"
    EXAMPLES = "examples"
    RUNBOOKS = "runbooks"
    MIGRATION = "migration"  # recording rules by which other tools' metrics have values for a while, a file for each tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedFile:
    """One file: its name, and its text."""

    name: str
    text: str

    @property
    def stem(self) -> str:
        """The name without its ending: that of an alert, a runbook or a dashboard."""
        return self.name.rpartition(".")[0]
