"""Brokers without a process, as pages of the API name them: what is shown of them is as of when they last wrote."""

from dataclasses import dataclass

from streaming.broker.protocol.json_message import PublicMessage


@dataclass(frozen=True, slots=True, kw_only=True)
class AwayBroker(PublicMessage):
    """A broker whose log dirs nobody holds: it is stopped, or they are a copy. Its files are as of ``last_ms``, its last sign of life.

    ``ended_ms``: by when its process had ended, -1 if it was not seen to end. What depends on the time is judged as of the page's: it is
    what a broker that starts then would find.
    """

    broker: int
    last_ms: int = -1
    ended_ms: int = -1
