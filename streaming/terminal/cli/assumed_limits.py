"""The line about limits that are assumed: of what, and which file could be given, in the words of all commands."""

from collections.abc import Sequence
from pathlib import Path

from streaming.broker.disk.log_dir_search import open_below
from streaming.broker.disk.opening import PROPERTIES_BYTES, read_small
from streaming.common.settings import Settings
from streaming.common.units import format_list, format_word
from streaming.errors import FormatError
from streaming.kafka.formats.properties import parse_server_properties

_NAMED = 3
_PLACES = ("config/server.properties", "config/kraft/server.properties", "server.properties")
_ABOVE = 3


def assumed_line(names: Sequence[str], settings: Settings | None = None) -> str:
    """The line.

    Args:
        names: what limits are assumed of, one at least.
        settings: those by which log dirs were read, None of a job.
    """
    files = ",".join(format_word(str(each)) for each in ([] if settings is None else _beside(settings)))
    return (
        f"assumed: {format_list(names, _NAMED)}: the broker's server.properties or the topics' settings are not known here, so Kafka's "
        f"defaults or weaker limits are assumed (?). Give --server-properties{f' {files}' if files else ''}; without a metadata log, set "
        "topic_config."
    )


def _beside(settings: Settings) -> list[Path]:
    """The nearest server.properties above log dirs that is of their node, one for each; none if the brokers' configurations are given."""
    found: dict[int, Path] = {}
    if settings.server_properties or settings.broker_config:
        return []
    for log_dir in open_below(settings.log_dirs).available:
        above = list(log_dir.path.absolute().parents)[:_ABOVE]
        for file in (each / place for each in above for place in _PLACES):
            if log_dir.broker not in found and _node_of(file) == log_dir.broker:
                found[log_dir.broker] = file
    return list(found.values())


def _node_of(file: Path) -> int | None:
    try:
        return parse_server_properties(read_small(file, PROPERTIES_BYTES, follows=True)).node_id
    except (OSError, FormatError):  # it is not there, or none that can be given
        return None
