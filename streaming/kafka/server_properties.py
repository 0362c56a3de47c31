"""``server.properties``, the static configuration of a broker: whose it is, and what of it may be read (`KafkaConfig`)."""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.configs import READABLE_KEYS
from streaming.kafka.properties import parse_properties

_NODE_KEYS = ("node.id", "broker.id")  # the second until ZooKeeper went, and as a synonym of the first
_MAX_INT = 2**31 - 1
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class ServerProperties:
    """Whose file it is, and the configurations in it that may be read: a file may hold passwords."""

    node_id: int
    configs: tuple[tuple[str, str], ...]


def parse_server_properties(data: bytes) -> ServerProperties:
    """Reads the file; of a name that stands there twice the last value counts, as in Java.

    Raises:
        FormatError: it is not in the format of Java's properties, or does not say whose it is.
    """
    properties = dict(parse_properties(data))
    written = next((properties[key].strip() for key in _NODE_KEYS if key in properties), None)
    if written is None:
        raise FormatError("neither node.id nor broker.id is in it, so it cannot be matched with a log dir")
    if not (written.isascii() and written.isdigit() and len(written) <= _DIGITS and int(written) <= _MAX_INT):
        raise FormatError(f"node.id {written!r} is not a node's number")
    return ServerProperties(int(written), tuple((name, value) for name, value in properties.items() if name in READABLE_KEYS))
