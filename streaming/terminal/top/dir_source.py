"""Answers from log dirs: one reading, kept until another one is asked for."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from streaming.broker.protocol.json_message import Message
from streaming.broker.protocol.listing_json import PARTITIONS_PATH
from streaming.terminal.top.job_source import JobSource
from streaming.terminal.top.questions import Answer, Question

if TYPE_CHECKING:  # it imports what reads the disk, which a job's screen does not need
    from streaming.pages.api.state import State

M = TypeVar("M", bound=Message)


class DirSource:
    """Asks a reading what a job is asked, by the same paths. ``read``: reads the log dirs. Raises `SegtailError`."""

    name = "the log dirs"

    def __init__(self, read: "Callable[[], State]") -> None:
        self._read = read
        self._state: State | None = None

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer from the last reading, or from a new one; see `AnswerSource`."""
        if again or self._state is None:
            self._state = self._read()
        state = self._state

        def find(path: str, kind: type[M]) -> M | None:
            message = _message(state, path)
            return message if isinstance(message, kind) else None

        return JobSource(self.name, find).ask(question, again=again)


def _message(state: "State", path: str) -> Message | None:
    """What a job would answer at a path with its query."""
    where, _, query = path.partition("?")
    if (message := state.answer(where, query)) is not None:
        return message
    *_, topic, last = map(unquote, where.split("/"))
    if where.startswith(f"{PARTITIONS_PATH}/"):
        return state.partition(topic, int(last))
    return state.group(last, query)
