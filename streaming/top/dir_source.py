"""Answers from log dirs: one reading, kept until another one is asked for."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote

from streaming.protocol.group_json import GROUPS_PATH, GroupPage
from streaming.protocol.json_message import Message
from streaming.protocol.listing_json import PARTITIONS_PATH, RETENTION_PATH, TRANSACTIONS_PATH
from streaming.protocol.problem_json import PROBLEMS_PATH
from streaming.protocol.status_json import STATUS_PATH
from streaming.top.job_source import JobSource
from streaming.top.questions import Answer, Question

if TYPE_CHECKING:  # it imports what reads the disk, which a job's screen does not need
    from streaming.offline.everything import Everything

M = TypeVar("M", bound=Message)


class DirSource:
    """Asks a reading what a job is asked, by the same paths.

    Args:
        read: reads the log dirs. Raises `SegtailError`.
    """

    name = "the log dirs"

    def __init__(self, read: "Callable[[], Everything]") -> None:
        self._read = read
        self._found: Everything | None = None

    def ask(self, question: Question, *, again: bool) -> Answer:
        """Answer from the last reading, or from a new one; see `Source`."""
        if again or self._found is None:
            self._found = self._read()
        found = self._found

        def find(path: str, kind: type[M]) -> M | None:
            message = _message(found, path)
            return message if isinstance(message, kind) else None

        return JobSource(self.name, find).ask(question, again=again)


def _message(found: "Everything", path: str) -> Message | None:
    """What a job would answer at a path with its query."""
    where, _, query = path.partition("?")
    state = found.state
    messages: Mapping[str, Callable[[], Message]] = {
        STATUS_PATH: state.status,
        PROBLEMS_PATH: lambda: state.problems(query),
        PARTITIONS_PATH: lambda: state.partitions(query),
        TRANSACTIONS_PATH: lambda: state.transactions(query),
        RETENTION_PATH: lambda: state.retention(query),
        GROUPS_PATH: lambda: _groups(found),
    }
    if where in messages:
        return messages[where]()
    *_, topic, last = map(unquote, where.split("/"))
    if where.startswith(f"{PARTITIONS_PATH}/"):
        return state.partition(topic, int(last))
    return next((each for each in found.groups.groups if each.summary.group == last), None)


def _groups(found: "Everything") -> GroupPage:
    summaries = [each.summary for each in found.groups.groups]
    return GroupPage(at_ms=found.state.status().at_ms, groups=summaries, total=len(summaries))
