"""How the fields of messages for people are written and in which columns of their lists: named where a field is declared.

A field is one line of its class: its type, which says its unit; its column, if tables have one; its default; and, behind it, what it means.
`docs.generators.api_reference` reads that for docs/api.md and the JSON Schema; it goes on in the comments below.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated

ASC, DESC = "asc", "desc"

WIDE = 20
"""Columns of this rank and above are left out by faces that wrap no cell."""


class Unit(Enum):
    """What kind of value a field has: it decides how that is written, and in which column side."""

    NAME = auto()
    WORD = auto()
    SENTENCE = auto()
    NAMES = auto()
    FLAG = auto()
    ID = auto()
    COUNT = auto()
    RATIO = auto()
    BYTES = auto()
    BYTES_RATE = auto()
    RATE = auto()
    MOMENT = auto()
    DURATION = auto()
    CURVE = auto()
    MESSAGE = auto()
    """A message of its own, or a list of them: no table has it."""

    @property
    def is_number(self) -> bool:
        """Whether values are aligned at their right."""
        return self in _NUMBERS


_NUMBERS = {Unit.ID, Unit.COUNT, Unit.RATIO, Unit.BYTES, Unit.BYTES_RATE, Unit.RATE, Unit.MOMENT, Unit.DURATION}

Name = Annotated[str, Unit.NAME]
Word = Annotated[str, Unit.WORD]
Sentence = Annotated[str, Unit.SENTENCE]
Names = Annotated[list[str], Unit.NAMES]
Flag = Annotated[bool, Unit.FLAG]
Id = Annotated[int, Unit.ID]
Count = Annotated[int, Unit.COUNT]
Ratio = Annotated[float, Unit.RATIO]
Bytes = Annotated[int, Unit.BYTES]
BytesRate = Annotated[float, Unit.BYTES_RATE]
Rate = Annotated[float, Unit.RATE]
Moment = Annotated[int, Unit.MOMENT]
Duration = Annotated[int, Unit.DURATION]
Curve = Annotated[list[float], Unit.CURVE]


@dataclass(frozen=True, slots=True)
class Heading:
    """The column of a field. ``rank``: the most important one first; 0 for none. Where there is no room, the least important are left out.

    ``sort``: the order in which the list is sorted by it unless another one is asked for, "" if it cannot be sorted by. ``key``: the letter
    of the heading that sorts by it in a terminal. ``toned``: it looks as severe as its row. ``least``: columns of a terminal that it can do
    with, 0 if it needs all. ``rare``: lines of text do without it where no row has anything in it. ``choices``: its words, if the list can
    be had with the rows that have some of them.
    """

    heading: str = ""
    rank: int = 0
    sort: str = ""
    key: str = ""
    toned: bool = False
    least: int = 0
    rare: bool = False
    choices: Collection[str] = ()


Partition = Annotated[Name, Heading("Partition", 1, ASC, "P", least=16)]
"""The topic of a row that is about a partition."""

Number = Annotated[Id, Heading(sort=ASC)]
"""Its number."""

Verdict = Annotated[Word, Heading("Verdict", 2, ASC, "V", toned=True, least=8)]
"""What is worst about a row; in ascending order the worst come first."""
