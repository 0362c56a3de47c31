"""Where Kafka's command line tools reach a broker, from its registration."""

import re
from collections.abc import Iterable

from streaming.kafka.formats.metadata_brokers import BrokerState

_INTERNAL = re.compile("(?i)controller|replication|inter.?broker|internal")
"""Names of listeners that are mostly not for clients. No registration contains which listener brokers use among themselves."""


def server_of(broker: BrokerState | None) -> str:
    """``HOST:PORT`` of a listener that is probably for clients, "" if none is known."""
    endpoints = () if broker is None else broker.endpoints
    chosen = min(endpoints, key=lambda each: _INTERNAL.search(each.name) is not None, default=None)
    return "" if chosen is None else f"{chosen.host}:{chosen.port}"


def server_of_any(brokers: Iterable[BrokerState | None]) -> str:
    """The server of the first broker of which one is known, "" if none is."""
    return next(filter(None, map(server_of, brokers)), "")
