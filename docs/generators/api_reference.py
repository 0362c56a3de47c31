"""The JSON Schema of every answer below `/api/v1/`, and of commands that alone have one:
``python -m docs.generators.api_reference`` prints it."""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields
from inspect import cleandoc, getsource
from textwrap import dedent
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from streaming.broker.protocol.advice_json import AdvicePage
from streaming.broker.protocol.disk_json import DISK_PATH, DiskAnswer
from streaming.broker.protocol.group_json import GroupDetail
from streaming.broker.protocol.json_message import PublicMessage, is_absent
from streaming.broker.protocol.listing_json import (
    COUNT_PATH,
    CountPage,
    PartitionDetail,
    TopicDetail,
)
from streaming.broker.protocol.restart_json import RESTART_PATH, RestartPage
from streaming.broker.protocol.status_json import COST_PATH, STATUS_PATH, Cost, DoctorPage, Status
from streaming.pages.listings import declared_lists, details
from streaming.pages.listings.declared_lists import GROUPS, LISTS, PARTITIONS, TOPICS
from streaming.pages.listings.listing import Listing


def meanings(kind: type[PublicMessage]) -> dict[str, str]:
    """What each field means, by its name: the comment behind it, which goes on in the lines below; "" where there is none.

    "likewise" stands for what the field before means.
    """
    found: dict[str, str] = {}
    for base in (each for each in reversed(kind.__mro__) if issubclass(each, PublicMessage)):
        source = dedent(getsource(base))
        (declared,) = ast.parse(source).body
        assert isinstance(declared, ast.ClassDef)
        lines, meant = source.splitlines(), ""
        for node in declared.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                comment = " ".join(_comment(lines, node.end_lineno or node.lineno))
                meant = found[node.target.id] = meant if comment == "likewise" else comment
    return found


def _comment(lines: list[str], number: int) -> Iterator[str]:
    """The comment behind a line, by its number, and below."""
    yield lines[number - 1].partition("#")[2].strip()
    for line in lines[number:]:
        code, mark, comment = line.partition("#")
        if code.strip() or not mark:
            return
        yield comment.strip()


ANSWERS: Mapping[str, type[PublicMessage]] = {
    STATUS_PATH: Status,
    **{each.path: each.page for each in LISTS.values()},
    f"{PARTITIONS.path}/TOPIC/NUMBER": PartitionDetail,
    f"{TOPICS.path}/NAME": TopicDetail,
    f"{GROUPS.path}/NAME": GroupDetail,
    COUNT_PATH: CountPage,
    DISK_PATH: DiskAnswer,
    RESTART_PATH: RestartPage,
    COST_PATH: Cost,
}
"""The message at each path."""

OF_COMMANDS: Mapping[str, type[PublicMessage]] = {"segtail advise": AdvicePage, "segtail doctor": DoctorPage}
"""The messages that a command alone prints, at no path."""

EVERY = (*ANSWERS.values(), *OF_COMMANDS.values())

_LISTS = [each for module in (details, declared_lists) for each in vars(module).values() if isinstance(each, Listing)]
_ROWS = {each.row: each for each in (*_LISTS, declared_lists.COUNTS["partition"], declared_lists.DISK["partition"])}

_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string"}


def schema() -> dict[str, object]:
    """The schema: ``$defs`` has each message by its name, and each of ``paths`` and ``commands`` refers to one."""
    kinds = sorted({kind for answer in EVERY for kind in _within(answer)}, key=lambda kind: kind.__name__)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Answers of segtail's jobs and commands",
        "paths": {path: _reference(kind) for path, kind in ANSWERS.items()},
        "commands": {command: _reference(kind) for command, kind in OF_COMMANDS.items()},
        "$defs": {kind.__name__: _of_kind(kind) for kind in kinds},
    }


def kinds_of(answer: type[PublicMessage]) -> list[type[PublicMessage]]:
    """A message, then those that are in it, as they come."""
    return list(dict.fromkeys(_within(answer)))


def _within(kind: type[PublicMessage]) -> Iterator[type[PublicMessage]]:
    yield kind
    for hint in get_type_hints(kind).values():
        yield from _of_type(hint)


def _of_type(hint: Any) -> Iterator[type[PublicMessage]]:
    if isinstance(hint, type) and issubclass(hint, PublicMessage):
        yield from _within(hint)
    for each in get_args(hint):
        yield from _of_type(each)


def _reference(kind: type[PublicMessage]) -> dict[str, object]:
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _of_kind(kind: Any) -> dict[str, object]:
    """A message. ``title`` is the head of a field's column in page, terminal and tables."""
    hints, meant = get_type_hints(kind), meanings(kind)
    titles = {each.name: {"title": each.heading} for each in _ROWS[kind].fields if each.heading} if kind in _ROWS else {}
    _, _, introduction = cleandoc(kind.__doc__ or "").partition("\n\n")
    return {
        "type": "object",
        **({"description": introduction.replace("\n", " ")} if introduction else {}),
        "properties": {
            each.name: titles.get(each.name, {}) | _of_field(each, hints[each.name]) | {"description": meant[each.name]}
            for each in fields(kind)
        },
        "required": [each.name for each in fields(kind)],
    }


def _of_field(field: Field[Any], hint: Any) -> dict[str, object]:
    described = _of_hint(hint)
    return {"type": [described["type"], "null"]} if field.default is not MISSING and is_absent(field.default) else described


def _of_hint(hint: Any) -> dict[str, object]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (each for each in arguments if each is not NoneType)
        return {"anyOf": [_of_hint(inner), {"type": "null"}]}
    if origin is list:
        item = _of_hint(arguments[0])
        return {"type": "array", "items": {"type": [item["type"], "null"]} if arguments[0] in (int, float) else item}
    return {"type": _TYPES[hint]} if hint in _TYPES else _reference(hint)


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(schema(), indent=1, ensure_ascii=False)}\n")
