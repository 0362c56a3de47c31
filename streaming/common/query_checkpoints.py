"""The checkpoints of other streaming queries in their text form: ``NAME=URI``, or ``NAME=URI;isolation=read_committed``."""

import os.path
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Self
from urllib.parse import unquote

FORM = "a mapping of names to URIs, or to {uri, isolation}; or NAME=URI and NAME=URI;isolation=read_committed, between commas"

LONGEST_NAME = 100
"""A query's name is in the labels of every series about it."""

_NAME = re.compile(r"[^\s=,;:/]([^=,;:/\n\r]*[^\s=,;:/])?")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//[^/]*)?")
_LOCAL_HOSTS = ("//", "//localhost", None)

_SECRET = re.compile(r"//[^/@:]*:[^/@]*@")


class Isolation(StrEnum):
    """How a query reads: what its ``kafka.isolation.level`` says."""

    READ_COMMITTED = "read_committed"
    READ_UNCOMMITTED = "read_uncommitted"


@dataclass(frozen=True, slots=True)
class QueryCheckpoint:
    """Where a query has its checkpoint. ``isolation``: None if it is not known; a checkpoint does not have it."""

    name: str
    uri: str
    isolation: Isolation | None = None

    def __post_init__(self) -> None:
        if not self.name.isprintable() or _NAME.fullmatch(self.name) is None or len(self.name) > LONGEST_NAME:
            raise ValueError(f"a query's name has up to {LONGEST_NAME} characters, and none of = , ; : /")
        if not self.uri or not self.uri.isprintable():
            raise ValueError(f"the URI of query {self.name} is empty or does not print")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse one.

        Raises:
            ValueError: it has another form.
        """
        name, equals, rest = text.partition("=")
        uri, semicolon, option = rest.partition(";")
        if not equals or (semicolon and not option.startswith("isolation=")):
            raise ValueError(FORM)
        return cls(name.strip(), uri.strip(), Isolation(option.partition("=")[2].strip()) if semicolon else None)

    @classmethod
    def of_entry(cls, name: str, entry: object) -> Self:
        """One of a mapping: its URI, or a mapping with ``uri`` and ``isolation``.

        Raises:
            ValueError: it has another form.
        """
        if isinstance(entry, str):
            return cls(name, entry)
        if not isinstance(entry, Mapping) or not {"uri"} <= entry.keys() <= {"uri", "isolation"} or not isinstance(entry["uri"], str):
            raise ValueError(FORM)
        isolation = entry.get("isolation")
        return cls(name, entry["uri"], None if isolation is None else Isolation(isolation))

    @property
    def local(self) -> Path | None:
        """The directory, if it is one of this machine; None of what only the JVM's Hadoop file systems can read."""
        scheme = _SCHEME.match(self.uri)
        if scheme is None:
            return Path(self.uri)
        if scheme[1].lower() != "file" or scheme[2] not in _LOCAL_HOSTS:
            return None
        return Path(unquote(self.uri[scheme.end() :]))

    @property
    def shown(self) -> str:
        """The URI for messages, without a password."""
        return _SECRET.sub("//***@", self.uri)

    @property
    def place(self) -> str:
        """The same for two URIs of one checkpoint, as far as they show it."""
        return self.uri.rstrip("/") if self.local is None else os.path.realpath(self.local)


def parse_all(value: object) -> object:
    """Accept text with commas, a list of such texts, or a mapping; leave other values to the type.

    Raises:
        ValueError: one of them has another form, two have one name, or two are one.
    """
    if isinstance(value, Mapping):
        return distinct(QueryCheckpoint.of_entry(str(name), entry) for name, entry in value.items())
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    if not all(isinstance(part, str | QueryCheckpoint) for part in parts):
        raise ValueError(FORM)
    return distinct(QueryCheckpoint.parse(part) if isinstance(part, str) else part for part in parts)


def distinct(checkpoints: Iterable[QueryCheckpoint]) -> tuple[QueryCheckpoint, ...]:
    """The checkpoints, each with its own name and in its own place.

    Raises:
        SameCheckpointError: two have one name, or are one.
    """
    by_name: dict[str, QueryCheckpoint] = {}
    by_place: dict[str, QueryCheckpoint] = {}
    for each in checkpoints:
        if each.name in by_name:
            raise SameCheckpointError(f"two checkpoints are named {each.name}")
        if (same := by_place.get(each.place)) is not None:
            raise SameCheckpointError(f"{same.name} and {each.name} are two names of one checkpoint, {each.shown}")
        by_name[each.name] = by_place[each.place] = each
    return tuple(by_name.values())


class SameCheckpointError(ValueError):
    """Two names are one, or stand for one checkpoint. Names both."""


def show_all(checkpoints: Iterable[QueryCheckpoint]) -> dict[str, object]:
    """The mapping that `parse_all` accepts."""
    return {each.name: each.uri if each.isolation is None else {"uri": each.uri, "isolation": str(each.isolation)} for each in checkpoints}
