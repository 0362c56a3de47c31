"""The fields of every answer for people: ``python -m streaming.pages.listings.api_reference FILE`` writes the file with its tables anew."""

import sys
from collections.abc import Iterator
from pathlib import Path

from streaming.broker.protocol.json_message import PublicMessage
from streaming.pages.listings.json_schema import EVERY, ROWS, kinds_of
from streaming.pages.listings.message_meanings import INTRODUCTIONS, MEANINGS

MARK = "<!-- What follows is made from streaming/pages/listings by `make docs`. -->\n"


def write_reference(text: str) -> str:
    """The document, with everything below `MARK` made anew."""
    head, mark, _ = text.partition(MARK)
    kinds = dict.fromkeys(kind for answer in EVERY for kind in kinds_of(answer))
    return f"{head}{mark}{''.join(map(_section, kinds))}"


def _section(kind: type[PublicMessage]) -> str:
    introduction = f"{INTRODUCTIONS[kind.__name__]}\n\n" if kind.__name__ in INTRODUCTIONS else ""
    return f"\n## {kind.__name__}\n\n{introduction}| field | meaning |\n|---|---|\n{''.join(_rows(kind))}"


def _rows(kind: type[PublicMessage]) -> Iterator[str]:
    if kind in ROWS:
        for field in ROWS[kind].fields:
            heading = f" (*{field.heading}*)" if field.heading else ""
            yield f"| `{field.name}` | {field.meaning}{heading} |\n"
        return
    for names, meaning in MEANINGS[kind]:
        yield f"| {', '.join(f'`{name}`' for name in names)} | {meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(write_reference(Path(sys.argv[1]).read_text(encoding="utf-8")))
