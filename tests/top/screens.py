"""States for tests, without a clock or a job."""

from dataclasses import replace
from typing import TypeVar

from streaming.broker.protocol.json_message import Message
from streaming.terminal.top.answer_sources import JobSource
from streaming.terminal.top.frame import drawn
from streaming.terminal.top.questions import Answer
from streaming.terminal.top.top_state import ScreenState, question
from streaming.terminal.top.watching import answered, failed, pressed
from tests.top.fake_job import FakeJob

M = TypeVar("M", bound=Message)


def ask(job: FakeJob, state: ScreenState) -> Answer:
    """What the job answers to what this screen wants, by way of the paths that are asked."""

    def find(path: str, kind: type[M]) -> M | None:
        message = job.answer(path)
        assert message is None or isinstance(message, kind)
        return message

    return JobSource("the job", find).ask(question(state), again=True)


def shown(job: FakeJob, *keys: str, width: int = 100, height: int = 24, start: ScreenState | None = None) -> ScreenState:
    """The state after these keys, each answered by the job before the next one."""
    state = start or ScreenState(source="the job at h:1", width=width, height=height)
    state = answered(state, ask(job, state), state.now)
    for key in keys:
        state = pressed(state, key)
        state = answered(state, ask(job, state), state.now)
    return state


def lost(state: ScreenState, why: str = "h:1 cannot be asked: Connection refused", seconds: float = 10.0) -> ScreenState:
    """The state when the job does not answer any more."""
    return failed(replace(state, now=state.now + seconds), why, state.now + seconds)


def lines(state: ScreenState) -> list[str]:
    """What is drawn, without styles."""
    return [line.plain.rstrip() for line in drawn(state).lines]


def text(state: ScreenState) -> str:
    """The same as one text."""
    return "\n".join(lines(state))
