"""Asks on a thread of its own, so that a job that is slow or away holds up no key."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from streaming.errors import SegtailError
from streaming.terminal.top.questions import Answer, AnswerSource, Question


@dataclass(frozen=True, slots=True)
class Failure:
    """There is no answer; ``why`` is a sentence."""

    why: str


@dataclass(frozen=True, slots=True)
class _Call:
    question: Question
    again: bool


class Asker:
    """One question is asked at a time, and one waits at most: the newest. For one thread beside its own.

    Args:
        wake: called on the thread of the asker when there is a result.
    """

    def __init__(self, source: AnswerSource, wake: Callable[[], None]) -> None:
        self._source = source
        self._wake = wake
        self._changed = threading.Condition()
        self._next: _Call | None = None
        self._busy = False
        self._results: SimpleQueue[Answer | Failure] = SimpleQueue()
        self._bug: Exception | None = None
        # Nobody waits for it at the end: an address that does not answer would hold up `q`.
        threading.Thread(target=self._run, name="asker", daemon=True).start()

    @property
    def busy(self) -> bool:
        """Whether a question is waiting for its answer."""
        with self._changed:
            return self._busy or self._next is not None

    def ask(self, question: Question, *, again: bool) -> None:
        """Ask this next, in place of what waits."""
        with self._changed:
            waits = self._next is not None and self._next.again
            self._next = _Call(question, again or waits)
            self._changed.notify()

    def results(self) -> list[Answer | Failure]:
        """What has come in, in its order; what failed without being meant to is raised here."""
        found = []
        while True:
            try:
                found.append(self._results.get_nowait())
            except Empty:
                break
        if self._bug is not None:
            raise self._bug
        return found

    def _run(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.wait_for(lambda: self._next is not None)
                call, self._next, self._busy = self._next, None, True
            if call is not None:
                self._results.put(self._asked(call))
            self._wake()

    def _asked(self, call: _Call) -> Answer | Failure:
        try:
            return self._source.ask(call.question, again=call.again)
        except SegtailError as error:
            return Failure(str(error))
        except Exception as error:  # noqa: BLE001 - it belongs to the thread that draws, whose end puts the terminal in order
            self._bug = error
            return Failure(f"{type(error).__name__}: {error}")
