"""Configurations that are tried on what lies on the disk: ``[TOPIC:]NAME=VALUE``."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from fnmatch import fnmatchcase

from streaming.common.units import parse_duration, parse_size
from streaming.kafka.formats.names import INTERNAL_TOPICS, METADATA_TOPIC
from streaming.rules.config_values import BY_NAME, Configs, Setting, ValueSource

NAMES = ("retention.ms", "retention.bytes", "segment.ms", "segment.bytes")
"""The configurations that can be tried."""

FORM = f"[TOPIC:]NAME=VALUE, where NAME is {', '.join(NAMES[:-1])} or {NAMES[-1]}"

_NUMBER = re.compile(r"-?[0-9]+")


@dataclass(frozen=True, slots=True)
class Trial:
    """One configuration for the topics whose names match ``pattern`` (``*`` and ``?`` stand for any characters).

    Without a pattern it is for all topics but Kafka's own, whose configuration nobody changes with that of the others.
    """

    text: str
    pattern: str
    setting: Setting

    def concerns(self, topic: str) -> bool:
        """Whether it is for a topic."""
        if not self.pattern:
            return topic not in INTERNAL_TOPICS and topic != METADATA_TOPIC and not topic.startswith("__")
        return fnmatchcase(topic, self.pattern)


def parse_trial(text: str) -> Trial:
    """Parse one.

    Raises:
        ValueError: it has another form, with a sentence.
    """
    head, equals, value = text.partition("=")
    pattern, _, name = head.rpartition(":")
    if not equals or name not in NAMES:
        raise ValueError(f"{text!r} is not {FORM}")
    try:
        parsed = BY_NAME[name].parse(_plain(name, value.strip()))
    except ValueError:
        form = "milliseconds, or a duration such as 15m, 24h or 7d" if name.endswith(".ms") else "bytes, or a size such as 128MiB or 50GiB"
        raise ValueError(f"{name} cannot be {value!r}: give {form}") from None
    return Trial(text, pattern, Setting(name, parsed, ValueSource.TOPIC))


def _plain(name: str, value: str) -> str:
    """The value as Kafka writes it."""
    if _NUMBER.fullmatch(value):
        return value
    return str(parse_duration(value) // timedelta(milliseconds=1) if name.endswith(".ms") else parse_size(value))


def trying(trials: Sequence[Trial]) -> Callable[[str], Configs]:
    """The settings that are tried for a topic; of several for one name, the last one counts."""

    def of(topic: str) -> Configs:
        return Configs(tuple({each.setting.name: each.setting for each in trials if each.concerns(topic)}.values()))

    return of
