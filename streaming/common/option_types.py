"""The types of options: what each accepts, in words, and how its value is shown.

The types are strict. Text is parsed by the type's own parser, and any other value (of a YAML file) must already have the right type, so
``true`` is no number and ``1`` no flag.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from streaming.common import query_checkpoints, targets, units
from streaming.errors import quoted

AUTO: Literal["auto"] = "auto"
"""Means that the value is chosen automatically."""

SparkName = Annotated[str, StringConstraints(pattern=r"^spark\.")]


def several_of(kind: type[StrEnum]) -> BeforeValidator:
    """Parse names of an enumeration: text with commas, or a list of names."""

    def read(value: object) -> object:
        parts = [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value
        return tuple(map(kind, parts)) if isinstance(parts, list | tuple) else value

    return BeforeValidator(read)


def one_of(kind: type[StrEnum]) -> Form:
    """The form of an enumeration."""
    return Form("one of " + ", ".join(kind), str)


@dataclass(frozen=True, slots=True)
class Form:
    """The text form of an option.

    Args:
        accepts: what is accepted, in words.
        show: converts the value for YAML.
    """

    accepts: str
    show: Callable[[Any], object]


def text(parse: Callable[[str], object]) -> BeforeValidator:
    """Parse text, which is all that the environment and the command line can give; leave other values to the type."""
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


_DURATION = Form(units.DURATION_FORM, units.write_duration)


Duration = Annotated[timedelta, text(units.parse_duration), Field(ge=timedelta(0)), _DURATION]


DurationOrAuto = Annotated[
    Annotated[timedelta, Field(ge=timedelta(0))] | None,
    text(lambda written: None if written == AUTO else units.parse_duration(written)),
    Form(f"{AUTO} or {units.DURATION_FORM}", lambda duration: AUTO if duration is None else units.write_duration(duration)),
]
"""None means auto."""


_ABOVE_ZERO = Form(f"{units.DURATION_FORM}, above zero", units.write_duration)


PositiveDuration = Annotated[timedelta, text(units.parse_duration), Field(ge=timedelta(milliseconds=1)), _ABOVE_ZERO]


Size = Annotated[int, text(units.parse_size), Field(ge=1), Form(units.SIZE_FORM, units.write_size)]


SizeOrNothing = Annotated[int, text(units.parse_size), Field(ge=0), Form(f"0 or {units.SIZE_FORM}", units.write_size)]


Count = Annotated[int, text(int), Field(ge=0), Form("a whole number, 0 or more", int)]


PositiveCount = Annotated[int, text(int), Field(ge=1), Form("a whole number, 1 or more", int)]


Ratio = Annotated[float, text(float), Field(gt=0, le=1), Form("a number above 0, at most 1", float)]


def _number_or_auto(written: str) -> int | str:
    return written if written == AUTO else int(written)


Shards = Annotated[
    Annotated[int, Field(ge=1, le=4096)] | Literal["auto"],
    text(_number_or_auto),
    Form("auto or a whole number from 1 to 4096", lambda shards: shards),
]


def _flag(word: str) -> bool:
    if word not in ("true", "false"):
        raise ValueError(word)
    return word == "true"


Flag = Annotated[bool, text(_flag), Form("true or false", bool)]


def _pattern(written: str) -> re.Pattern[str]:
    try:
        return re.compile(written, re.DOTALL)
    except re.error as error:
        raise ValueError(written) from error


Pattern = Annotated[re.Pattern[str], text(_pattern), Form("a regular expression", lambda pattern: pattern.pattern)]


def _path(name: str) -> Path:
    if not name.isprintable():  # it is in labels, messages and lists with a path a line; half of it may be no text at all
        raise ValueError(f"{quoted(name)} has characters that do not print")
    if not name:
        raise ValueError("empty")
    return Path(name)


Directory = Annotated[Path, text(_path), Form("a directory", str)]


def _paths(value: object) -> object:
    """Accept a YAML list or, like Kafka's own ``log.dirs``, names separated by commas."""
    parts = [name for name in value.split(",") if name] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    return tuple(_path(part.strip()) if isinstance(part, str) else part for part in parts)


def _show_paths(paths: tuple[Path, ...]) -> list[str]:
    return [str(path) for path in paths]


Directories = Annotated[tuple[Path, ...], BeforeValidator(_paths), Form("directories between commas, or a list of them", _show_paths)]


Files = Annotated[tuple[Path, ...], BeforeValidator(_paths), Form("files between commas, or a list of them", _show_paths)]


Listen = Annotated[units.Address, text(units.Address.parse), Form("HOST:PORT", str)]


def _optional(value: object) -> str | None:
    return None if value is None else str(value)


OptionalFile = Annotated[Path | None, text(_path), Form("a file", _optional)]


OptionalDirectory = Annotated[Path | None, text(_path), Form("a directory", _optional)]


OptionalListen = Annotated[units.Address | None, text(units.Address.parse), Form("HOST:PORT", _optional)]


def _targets(value: object) -> object:
    """Accept a YAML list or text with commas."""
    parts = [part for part in value.split(",") if part.strip()] if isinstance(value, str) else value
    if not isinstance(parts, list | tuple):
        return value
    return tuple(targets.Target.parse(part.strip()) if isinstance(part, str) else part for part in parts)


def _show_targets(given: tuple[targets.Target, ...]) -> list[str]:
    return [str(target) for target in given]


Agents = Annotated[
    tuple[targets.Target, ...], BeforeValidator(_targets), Form(f"{targets.FORM}, between commas or as a list", _show_targets)
]


QueryCheckpoints = Annotated[
    tuple[query_checkpoints.QueryCheckpoint, ...],
    BeforeValidator(query_checkpoints.parse_all),
    Form(query_checkpoints.FORM, query_checkpoints.show_all),
]


PageUrl = Annotated[
    str,
    text(lambda written: written.removesuffix("/")),
    # What commands in alerts hold: no character of it means anything to a shell, or ends a line.
    StringConstraints(pattern=r"^$|^https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$"),
    Form("an address such as http://HOST:PORT or https://HOST", str),
]


JobUrl = Annotated[
    str,
    StringConstraints(pattern=r"^$|^https?://[^\s/?#]+/?$"),
    Form("an address such as http://HOST:PORT or https://USER:PASSWORD@HOST", str),
]


Folder = Annotated[
    str,
    StringConstraints(pattern=r"^$|^[A-Za-z][A-Za-z0-9+.-]*://?.+"),
    Form("an address such as hdfs://host/folder, s3a://bucket/folder or file:///folder", str),
]


SparkMaster = Annotated[str, StringConstraints(min_length=1), Form("a Spark master such as local[2], yarn or spark://HOST:PORT", str)]


def _config_value(value: object) -> object:
    """Convert the value to text: options of Spark and of Kafka are text, but YAML reads ``4`` and ``true`` as other types."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


SparkOptions = Annotated[
    Mapping[SparkName, Annotated[str, BeforeValidator(_config_value)]],
    Form("a mapping of Spark's own option names (spark.…) to values", dict),
]


KafkaConfigs = Mapping[str, Annotated[str, BeforeValidator(_config_value)]]


BrokerConfig = Annotated[KafkaConfigs, Form("a mapping of a broker's configurations (log.retention.hours, ...) to values", dict)]


def _pattern_text(written: str) -> str:
    _pattern(written)
    return written


TopicConfig = Annotated[
    Mapping[Annotated[str, AfterValidator(_pattern_text)], KafkaConfigs],
    Form(
        "a mapping of regular expressions to mappings of a topic's configurations (retention.ms, ...) to values",
        lambda patterns: {pattern: dict(configs) for pattern, configs in patterns.items()},
    ),
]
