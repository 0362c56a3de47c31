"""The agents of a stream: who answers at which address, asked in parallel, again and again, because they come and go."""

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

import pyarrow as pa

from streaming.agent.client import AgentClient
from streaming.agent.messages import Range
from streaming.errors import AgentError
from streaming.source.options import SourceOptions

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 20.0
"""How long a read tries again: Spark's own retries come without a pause."""

_PAUSE_SECONDS = 0.25

_Answer = TypeVar("_Answer")


@cache
def client(address: str) -> AgentClient:
    """The connection of this process to an address."""
    return AgentClient(address)


def ask_all(addresses: Iterable[str], question: Callable[[AgentClient], _Answer]) -> dict[str, _Answer]:
    """Ask every agent at once; one that does not answer is missing from the result, and its connection is made anew the next time."""
    wanted = sorted(set(addresses))
    if not wanted:
        return {}
    with ThreadPoolExecutor(len(wanted)) as pool:
        answers = pool.map(lambda address: _asked(address, question), wanted)
    return {address: answer for address, answer in zip(wanted, answers, strict=True) if answer is not None}


def _asked(address: str, question: Callable[[AgentClient], _Answer]) -> _Answer | None:
    try:
        return question(client(address))
    except AgentError as error:
        log.warning("agent does not answer", extra={"address": address, "error": str(error)})
        client(address).close()
        return None


def read_range(options: SourceOptions, agent: str, asked: Range, last_at: str | None) -> pa.Table | None:
    """All rows of a range, tried again for a while; None if the agent stays away. It knows what has arrived, and sends the rest later.

    Args:
        last_at: where the agent was last, which is tried first; it may have come back at another address.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        for address in sorted(options.addresses(), key=lambda address: address != last_at):
            try:
                if client(address).status().agent == agent:
                    return client(address).read(asked)
            except AgentError as error:
                log.warning("read failed", extra={"agent": agent, "address": address, "error": str(error)})
                client(address).close()
        if time.monotonic() > deadline:
            log.error("range not delivered now, it will be planned again", extra={"agent": agent, "upto": asked.upto})
            return None
        time.sleep(_PAUSE_SECONDS)
