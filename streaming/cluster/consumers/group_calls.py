"""Calls to agents that nobody waits for longer than a moment: one agent that is slow or silent does not hold up the others."""

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from streaming.errors import AgentError

log = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_AT_ONCE = 32


ANSWER_SECONDS = 5.0
"""How long an answer about a group waits for agents."""


def ask_agents(calls: Mapping[str, Callable[[], _Answer]]) -> dict[str, _Answer]:
    """Make some calls at once, and return what has come in time."""
    made: Calls[_Answer] = Calls("details")
    answers, errors = made.call(calls, ANSWER_SECONDS)
    made.close()
    for name, error in errors.items():
        log.info("a consumer group is shown without what an agent knows", extra={"of": name, "error": str(error)})
    return answers


class Calls(Generic[_Answer]):
    """Calls of one kind, at most one to each agent at a time. For one thread."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix=name)
        self._running: dict[str, Future[_Answer]] = {}

    def free(self, agent: str) -> bool:
        """Whether no call to this agent is still under way."""
        return agent not in self._running

    def call(self, calls: Mapping[str, Callable[[], _Answer]], seconds: float) -> tuple[dict[str, _Answer], dict[str, AgentError]]:
        """Call agents, and wait for so long at most; for calls of earlier rounds nobody waits again.

        Returns:
            the answers and the errors that have arrived, those of earlier calls among them, by agent.
        """
        begun = {agent: self._pool.submit(call) for agent, call in calls.items() if self.free(agent)}
        self._running |= begun
        wait(begun.values(), seconds)
        ended = {agent: each for agent, each in self._running.items() if each.done()}
        self._running = {agent: each for agent, each in self._running.items() if agent not in ended}
        answers: dict[str, _Answer] = {}
        errors: dict[str, AgentError] = {}
        for agent, each in ended.items():
            try:
                answers[agent] = each.result()
            except AgentError as error:
                errors[agent] = error
            except Exception as error:  # of one agent: the answers of the others count
                log.exception("an agent's answer about consumer groups is not understood", extra={"agent": agent})
                errors[agent] = AgentError(f"agent {agent}: {error}")
        return answers, errors

    def close(self) -> None:
        """Begin no more calls."""
        self._pool.shutdown(wait=False, cancel_futures=True)
