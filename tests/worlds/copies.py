"""Phases of a broker, and what copies of its log dirs show."""

from typing import Any

from streaming.broker.protocol.cluster_messages import Registered
from streaming.broker.protocol.status_messages import BrokerStatus


def copy(broker: int, offset: int, *registered: Registered, **values: Any) -> BrokerStatus:
    return BrokerStatus(
        broker=broker,
        readable=True,
        metadata_offset=offset,
        registered=list(registered),
        controller=-1,
        led=[],
        transaction_partitions=0,
        **values,
    )


RUNS = Registered(2, False, epoch=7, phase="running", since_ms=5_000)


DOWN = Registered(2, True, epoch=7, phase="down", since_ms=9_500)


FENCED = Registered(2, True, epoch=7, phase="", since_ms=20_000)
"""As a copy tells it that begins with a snapshot."""
