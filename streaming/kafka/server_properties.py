"""``server.properties``, the static configuration of a broker: whose it is, and what of it may be read (`KafkaConfig`)."""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.configs import READABLE_KEYS
from streaming.kafka.properties import parse_node_id, parse_properties

_NODE_KEYS = ("node.id", "broker.id")  # the second until ZooKeeper went, and as a synonym of the first


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
    return ServerProperties(
        parse_node_id(written, _NODE_KEYS[0]), tuple((name, value) for name, value in properties.items() if name in READABLE_KEYS)
    )
