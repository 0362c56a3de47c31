"""The fields of every answer for people: ``python -m streaming.pages.listings.api_reference FILE`` writes the file with its tables anew."""

import sys
from collections.abc import Iterator
from inspect import cleandoc
from itertools import groupby
from pathlib import Path

from streaming.broker.protocol.json_message import PublicMessage
from streaming.pages.listings import details, disk_list, group_list, partition_list, problem_list, transaction_list
from streaming.pages.listings.json_schema import EVERY, kinds_of
from streaming.pages.listings.listing import Listing
from streaming.pages.listings.meanings import meanings

MARK = "<!-- What follows is made from streaming/broker/protocol by `make docs`. -->\n"

_MODULES = (details, disk_list, group_list, partition_list, problem_list, transaction_list)
_LISTS = [each for module in _MODULES for each in vars(module).values() if isinstance(each, Listing)]
_ROWS = {each.row: each for each in (*_LISTS, partition_list.COUNTS["partition"], disk_list.DISK["partition"])}


def write_reference(text: str) -> str:
    """The document, with everything below `MARK` made anew."""
    head, mark, _ = text.partition(MARK)
    kinds = dict.fromkeys(kind for answer in EVERY for kind in kinds_of(answer))
    return f"{head}{mark}{''.join(map(_section, kinds))}"


def _section(kind: type[PublicMessage]) -> str:
    _, _, introduction = cleandoc(kind.__doc__ or "").partition("\n\n")
    head = f"\n## {kind.__name__}\n\n{introduction}".rstrip()
    return f"{head}\n\n| field | meaning |\n|---|---|\n{''.join(_rows(kind))}"


def _rows(kind: type[PublicMessage]) -> Iterator[str]:
    """A row for each field, and for those next to each other that share what they mean and how they are headed."""
    headings = {each.name: f" (*{each.heading}*)" for each in _ROWS[kind].fields if each.heading} if kind in _ROWS else {}
    for (meaning, heading), names in groupby(meanings(kind).items(), lambda each: (each[1], headings.get(each[0], ""))):
        yield f"| {', '.join(f'`{name}`' for name, _ in names)} | {meaning}{heading} |\n"


if __name__ == "__main__":
    sys.stdout.write(write_reference(Path(sys.argv[1]).read_text(encoding="utf-8")))
