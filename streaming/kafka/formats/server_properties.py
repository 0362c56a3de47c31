"""``server.properties``, the static configuration of a broker: its node id, and the values that may be read (`KafkaConfig`)."""

from dataclasses import dataclass

from streaming.errors import FormatError
from streaming.kafka.formats.configs import READABLE_KEYS
from streaming.kafka.formats.properties import parse_node_id, parse_properties

_NODE_KEYS = ("node.id", "broker.id")  # the second was used until ZooKeeper was removed, and as a synonym of the first


@dataclass(frozen=True, slots=True)
class ServerProperties:
    """The node id of a file, and its configurations that may be read: a file may contain passwords."""

    node_id: int
    configs: tuple[tuple[str, str], ...]


def parse_server_properties(data: bytes) -> ServerProperties:
    """Parse the file. If a name occurs twice, the last value counts, as in Java.

    Raises:
        FormatError: it is not in the format of Java's properties, or does not contain the node id.
    """
    properties = dict(parse_properties(data))
    written = next((properties[key].strip() for key in _NODE_KEYS if key in properties), None)
    if written is None:
        raise FormatError("neither node.id nor broker.id is in it, so it cannot be matched with a log dir")
    return ServerProperties(
        parse_node_id(written, _NODE_KEYS[0]), tuple((name, value) for name, value in properties.items() if name in READABLE_KEYS)
    )
