"""Reads the ``server.properties`` files that the options name, wherever they are."""

from collections.abc import Iterable
from pathlib import Path

from streaming.broker.disk.opening import PROPERTIES_BYTES, read_small
from streaming.errors import FormatError, UsageError
from streaming.kafka.formats.server_properties import ServerProperties, parse_server_properties


def read_server_properties(paths: Iterable[Path]) -> tuple[ServerProperties, ...]:
    """Read the files of several brokers.

    Raises:
        UsageError: one cannot be read or does not contain the node id, or two belong to one broker.
    """
    found: dict[int, Path] = {}
    read = []
    for path in paths:
        try:
            properties = parse_server_properties(read_small(path, PROPERTIES_BYTES))
        except OSError as error:
            raise UsageError(f"server.properties {path} cannot be read: {error.strerror}") from error
        except FormatError as error:
            raise UsageError(f"{path} is no server.properties: {error}") from error
        other = found.setdefault(properties.node_id, path)
        if other != path:
            raise UsageError(f"{path} and {other} are both of node {properties.node_id}: name one for each broker")
        read.append(properties)
    return tuple(read)
