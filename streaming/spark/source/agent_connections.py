"""The agents of a stream: which one answers at which address. All are asked in parallel, again and again, because they come and go.

The first time that an agent does not answer, the caller waits for it, up to the deadline of the call. From then on it is asked in the
background, with growing pauses, and no caller waits for it until it answers. One that answers that, and then lets callers wait again, is
asked ever more rarely. So the others' rows go on, whatever is wrong with one agent.
"""

import json
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, as_completed, wait
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import Range
from streaming.broker.protocol.status_messages import Status
from streaming.common.event_row import journal_file
from streaming.common.lanes import Lane
from streaming.common.logs import configure_worker
from streaming.common.whole_files import write_whole
from streaming.errors import AgentError, GoneError, SameAgentError, VersionError
from streaming.kafka.formats.properties import known_clusters
from streaming.spark.client.address_lookup import NO_FILES, ClientFiles
from streaming.spark.client.agent_client import ANSWER_SECONDS, STREAM_SECONDS, AgentClient
from streaming.spark.source.job_options import SourceOptions

log = logging.getLogger(__name__)

configure_worker()  # Spark imports this where it plans and reads

PATIENCE_SECONDS = 20.0
"""How long a read is retried here, because Spark's own retries come without a pause."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.25, 10.0
"""The first and the longest pause before an agent that does not answer is asked again; the pause doubles each time."""

HELD_UP_PAUSES, SOUND_SECONDS = 16, 600.0
"""An agent that lets callers wait though it answers in the background: after the second time within `SOUND_SECONDS` it is left alone for
`LONGEST_PAUSE_SECONDS`, then for twice as long each time, up to so many of these pauses."""

MOST_LOGGED, LOGGED_SECONDS = 10, 600.0
"""So many lines are logged about an agent within so long."""

REFUSED_SECONDS = 30.0
"""The pause before an agent that answers, but may not take part, is checked again."""

GRACE_SECONDS = 2.0
"""A call ends by itself at its deadline. One that has not so much later is left to itself: then it is not known what it waits for."""

CHECK_AGAIN_SECONDS = 60.0
"""The pause before it is checked again whether an agent's rows can be read: the agent may change without a new version."""

_JOB_SEES = frozenset(
    {
        Reason.REFUSED,
        Reason.UNRESOLVED,
        Reason.UNTRUSTED,
        Reason.UNAUTHORIZED,
        Reason.PROTOCOL,
        Reason.OTHER_CLUSTER,
        Reason.SAME_NAME,
    }
)
"""Reasons that keep an agent away whatever the request is, so that the job detects them too."""

_AWAY = frozenset({Reason.REFUSED, Reason.UNRESOLVED, Reason.UNTRUSTED, Reason.UNAUTHORIZED, Reason.TWIN_CONSUMER})
"""Reasons that a job finds out by itself, and sooner: they keep an agent from answering anything, or are in its status."""

_PAUSE_SECONDS = 0.25

_Answer = TypeVar("_Answer")

_job_logs = False

_AT_ONCE = 1 << 16
"""Each agent has a thread of its own when it is asked: those that do not answer take none from the others."""

_MOST_WORDS = 500  # of an error

RANGE_SECONDS = 10.0
"""How long the rows of one of several agents may take, so long as nothing is known against it. Others' rows wait for them."""

HELD_UP_SHARE = 9
"""After a range that did not arrive again, an agent is left alone for so many times as long as the others have waited for it."""


class AgentLine:
    """The connection of this process to an address, and whether to wait for its answers. One thread decides, several may ask.

    Args:
        clock: seconds of a clock that only goes forward.
    """

    def __init__(self, address: str, files: ClientFiles, clock: Callable[[], float] = time.monotonic) -> None:
        self.client = AgentClient(address, files)
        self.error: AgentError | None = None
        """Why no caller waits for its answers; None if they are waited for."""
        self.unanswered: dict[str, AgentError] = {}
        """The calls that it did not answer the last time, though it may answer others, and why."""
        self._clock = clock
        self._logged = self._refusal_logged = ""
        self._logs = True
        self._lines: deque[float] = deque(maxlen=MOST_LOGGED)  # when they were logged
        self._pause = 0.0
        self._again_at = 0.0
        self._held_up, self._held_up_at = 0, 0.0
        self._aside: Future[Any] | None = None
        self._checked: tuple[tuple[str, str, int], AgentError | None] | None = None  # what was checked, and the result
        self._check_again_at = 0.0

    def is_available(self) -> bool:
        """Whether it answered the last time. If it did not, ask it in the background when its pause is over."""
        if self.error is None:
            return True
        if self._aside is None:
            if self._clock() >= self._again_at:
                self._aside = _background().do(self._answers)
        elif self._aside.done():
            error, self._aside = self._aside.exception(), None
            if error is None:
                self.error = None
                return True
            self._put_off(self._as_agent_error(error))
        return False

    def _answers(self) -> None:
        """Ask how it is and for rows, so that no caller has to wait to find out that it sends none. A misfit is told by `misfit`."""
        self._check(self.client.status())

    def _check(self, status: Status) -> None:
        error = self.misfit(status)
        if error is not None and not isinstance(error, VersionError):
            raise error

    def check(self, status: Status) -> "Future[None]":
        """Begin to find out whether the agent with this status can be understood: see `known_misfit`."""
        return _background().do(partial(self._check, status))

    def put_aside(self, asked: "Future[Any]") -> None:
        """No caller waits for it until that has been answered."""
        self._aside = asked

    def ask(self, question: Callable[[AgentClient], _Answer]) -> "Future[_Answer]":
        """Begin to ask it."""
        return _background().do(partial(question, self.client))

    def answer(self, asked: "Future[_Answer]", call: str = Call.STATUS, *, logs: bool = True) -> _Answer | None:
        """The answer to a question for which the caller has waited; None if there is none.

        Args:
            call: that the question is about.
            logs: log that here; else the caller does.
        """
        self._logs = logs
        try:
            answer = asked.result(0)
        except (AgentError, TimeoutError) as error:
            self._aside = None if asked.done() else asked  # nothing else is asked before it has ended
            self._miss(call, self._as_agent_error(error))
            return None
        self.unanswered.pop(call, None)
        if self._logged and not self.unanswered:
            if logs:
                log.info("agent answers again", extra={"address": self.client.address})
            self._logged = ""
        self._pause = 0.0
        return answer

    def _as_agent_error(self, error: BaseException) -> AgentError:
        if isinstance(error, AgentError):
            return error
        address = self.client.address
        if isinstance(error, TimeoutError):
            return AgentError(f"agent at {address}: it does not answer in time", Reason.SILENT)
        return AgentError(f"agent at {address}: {error}")

    def _miss(self, call: str, error: AgentError) -> None:
        self.unanswered[call] = error
        if error.reason == Reason.SILENT:
            self._held_up = self._held_up + 1 if self._clock() - self._held_up_at < SOUND_SECONDS else 1
            self._held_up_at = self._clock()
        self._put_off(error)

    def misfit(self, status: Status) -> AgentError | None:
        """Why the agent with this status cannot be understood, None if it can. Checked when its version changes, and now and then."""
        if not self.is_unchecked(status):
            return self.known_misfit()
        pause, found = CHECK_AGAIN_SECONDS, None
        try:
            self.client.check(status)
            self._refusal_logged = ""
        except AgentError as error:
            found, pause = error, REFUSED_SECONDS if isinstance(error, VersionError) else 0.0
        if found is None or isinstance(found, VersionError):
            self.unanswered.pop(Call.EVENTS, None)
        else:
            self.unanswered[Call.EVENTS] = found
        self._checked, self._check_again_at = (_identity(status), found), self._clock() + pause
        return found

    def known_misfit(self) -> AgentError | None:
        """What `misfit` has found the last time."""
        return None if self._checked is None else self._checked[1]

    def check_again(self) -> None:
        """What is known of whether its rows can be read holds no more."""
        self._check_again_at = 0.0

    def is_unchecked(self, status: Status) -> bool:
        """Whether it has to be found out whether the agent with this status can be understood."""
        return self._checked is None or self._checked[0] != _identity(status) or self._clock() >= self._check_again_at

    def refuse(self, error: AgentError, *, logs: bool = True) -> None:
        """It answers, but may not take part. ``logs``: as for `ask`."""
        self.error = error
        self._again_at = self._clock() + REFUSED_SECONDS
        self._refusal_logged = self._log_once(error, self._refusal_logged) if logs else str(error)
        self.client.close()

    def _put_off(self, error: AgentError) -> None:
        self.error = error
        self._pause = min(LONGEST_PAUSE_SECONDS, max(FIRST_PAUSE_SECONDS, 2 * self._pause))
        held_up = LONGEST_PAUSE_SECONDS * min(HELD_UP_PAUSES, 2 ** max(0, self._held_up - 2)) if self._held_up > 1 else 0.0
        self._again_at = self._clock() + max(self._pause, held_up)
        self._logged = self._log_once(error, self._logged) if self._logs else str(error)
        self.client.close()

    def _log_once(self, error: AgentError, logged: str) -> str:
        """Log why it does not take part, each reason once. ``logged`` is the reason before; returns the present one."""
        if str(error) != logged and not (_job_logs and error.reason in _JOB_SEES) and self._may_log():
            log.warning("agent does not take part", extra={"address": self.client.address, "reason": error.reason, "error": str(error)})
        return str(error)

    def _may_log(self) -> bool:
        """Whether it is not too much: an agent chooses its words, and may vary them."""
        now = self._clock()
        if len(self._lines) == self._lines.maxlen and now - self._lines[0] < LOGGED_SECONDS:
            return False
        self._lines.append(now)
        return True


@cache
def _background() -> Lane:
    return Lane("agent", _AT_ONCE, _AT_ONCE)


def _identity(status: Status) -> tuple[str, str, int]:
    return status.version, status.journal, status.protocol


def leave_to_the_job() -> None:
    """In this process, do not log what the job logs too: the job asks each agent for its status in a process of its own."""
    global _job_logs
    _job_logs = True


def ask_all(
    addresses: Iterable[str],
    question: Callable[[AgentClient], _Answer],
    files: ClientFiles = NO_FILES,
    *,
    call: str = Call.STATUS,
    seconds: float = ANSWER_SECONDS,
    logs: bool = True,
) -> dict[str, _Answer]:
    """Ask every agent at once; one that does not answer is missing from the result.

    Args:
        call: that the question is about.
        seconds: the deadline of that call. No agent is waited for beyond it.
        logs: as for `AgentLine.answer`.
    """
    lines = [each for each in (line(address, files) for address in sorted(set(addresses))) if each.is_available()]
    asked = [each.ask(question) for each in lines]
    wait(asked, seconds + GRACE_SECONDS)
    answers = [each.answer(one, call, logs=logs) for each, one in zip(lines, asked, strict=True)]
    return {each.client.address: answer for each, answer in zip(lines, answers, strict=True) if answer is not None}


def line(address: str, files: ClientFiles = NO_FILES) -> AgentLine:
    """The line of this process to an address."""
    return _line(address, files)


@cache
def _line(address: str, files: ClientFiles) -> AgentLine:
    return AgentLine(address, files)


def misfits(answers: Mapping[str, Status], files: ClientFiles = NO_FILES) -> dict[str, AgentError]:
    """The agents that answered, but are of a version that this one does not understand: the reason, by address."""
    lines = {address: line(address, files) for address in answers}
    checks = {address: each.check(answers[address]) for address, each in lines.items() if each.is_unchecked(answers[address])}
    wait(checks.values(), ANSWER_SECONDS + GRACE_SECONDS)
    found = {address: each.known_misfit() for address, each in lines.items()}
    for address, check in checks.items():
        if not check.done():  # it may be busy with other jobs' rows: it takes part as soon as it has answered
            lines[address].put_aside(check)
            found[address] = AgentError(f"agent at {address}: it sends no rows in time", Reason.SILENT)
    return {address: error for address, error in found.items() if error is not None}


def unanswered_path(checks: Path) -> Path:
    """The file for that, beside the one with the last check for work."""
    return checks.with_name("unanswered")


def unanswered(addresses: Iterable[str], files: ClientFiles = NO_FILES) -> dict[str, AgentError]:
    """The agents that do not answer what they are asked here, though they may answer the job: the first call of each, by address."""
    found: dict[str, AgentError] = {}
    for address in addresses:
        for call, error in line(address, files).unanswered.copy().items():
            if error.reason not in _AWAY:
                found.setdefault(address, AgentError(f"{error}, asked for {call}", error.reason))
    return found


def write_unanswered(path: Path, errors: Mapping[str, AgentError]) -> None:
    """Write which agents do not answer what the query asks, and why. Raises OSError: it cannot be written."""
    write_whole(
        path, json.dumps({address: [str(error)[:_MOST_WORDS], error.reason] for address, error in errors.items()}).encode(), lasting=False
    )


def errors(addresses: Iterable[str], files: ClientFiles = NO_FILES) -> dict[str, AgentError]:
    """The reason of each agent that does not answer, by address."""
    found = {address: line(address, files).error for address in addresses}
    return {address: error for address, error in found.items() if error is not None}


def read_unanswered(path: Path) -> dict[str, AgentError]:
    """The same; none where nothing was written, or it cannot be read."""
    try:
        return {str(address): AgentError(str(words), Reason(reason)) for address, (words, reason) in json.loads(path.read_bytes()).items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        log.warning("what the query knows of agents cannot be read", extra={"path": str(path), "error": str(error)})
        return {}


def unwelcome(
    answers: Mapping[str, Status], there: Mapping[str, Status], journals: Mapping[str, str], cluster_id: str
) -> dict[str, AgentError]:
    """The agents that answered, but may not take part: the reason, by address.

    Args:
        there: the agents that take part already, by address.
        journals: the journal that each agent's name had so far. If two agents have one name, the one with that journal takes part.
        cluster_id: of the job, "" for any.
    """
    found: dict[str, AgentError] = {}
    taken = {status.agent: (address, status.journal) for address, status in there.items()}
    known = {agent: journal_file(journal) for agent, journal in journals.items()}
    for address in sorted(answers, key=lambda at: (journal_file(answers[at].journal) != known.get(answers[at].agent), at)):
        status = answers[address]
        if len(known_clusters((cluster_id, status.cluster_id))) > 1:
            found[address] = AgentError(
                f"agent at {address}: it watches cluster {status.cluster_id}, this job cluster {cluster_id}: run one job per cluster",
                Reason.OTHER_CLUSTER,
            )
            continue
        other, journal = taken.setdefault(status.agent, (address, status.journal))
        if other != address:
            is_same = journal_file(journal) == journal_file(status.journal)  # a consumer may have begun between two answers
            same = (
                f"it is the agent at {other} ({status.agent}), which takes part once: name one of its addresses"
                if is_same
                else f"it has the name of another agent, which is the one at {other} ({status.agent}): start each agent with a name of its "
                "own: segtail agent --name NAME"
            )
            found[address] = (SameAgentError if is_same else AgentError)(
                f"agent at {address}: {same}",
                Reason.SAME_NAME,
            )
    return found


def read_ranges(
    options: SourceOptions, ranges: Mapping[str, Range], addresses: Mapping[str, str], seconds: Mapping[str, float]
) -> Iterator[tuple[str, pa.Table | None]]:
    """All rows of each agent's range, in the order in which they arrive; None for an agent that does not answer.

    What the process that plans finds out about agents, for the job, whose own process asks each of them how it is and nothing else.

    All ranges are read at the same time, and each is retried for a while. Rows that do not arrive are planned again.

    Args:
        addresses: the last address of each agent. It is tried first; the agent may have come back at an address that no other agent had.
        seconds: how long the rows of an agent may take, `STREAM_SECONDS` if it is not there.
    """
    allowed = {agent: seconds.get(agent, STREAM_SECONDS) for agent in ranges}
    reads = {
        _background().do(partial(_read_range, options, agent, request, addresses, allowed[agent])): agent
        for agent, request in ranges.items()
    }
    try:
        for read in as_completed(reads, max(allowed.values(), default=0.0) + 3 * ANSWER_SECONDS + GRACE_SECONDS):
            yield reads.pop(read), read.result()
    except TimeoutError:
        for agent in reads.values():
            log.error("a read has not ended, its range will be planned again", extra={"agent": agent, "upto": ranges[agent].upto})
            yield agent, None


def _read_range(options: SourceOptions, agent: str, request: Range, addresses: Mapping[str, str], seconds: float) -> pa.Table | None:
    last_at, others = addresses.get(agent), {address for name, address in addresses.items() if name != agent}
    ends_at, gives_up_at = time.monotonic() + seconds, time.monotonic() + min(seconds, PATIENCE_SECONDS)
    logged = ""
    while True:
        candidates = [address for address in options.addresses() if address not in others]
        for address in sorted(candidates, key=lambda address: address != last_at):
            to = client(address, options.files)
            try:
                if to.status().agent == agent:
                    return to.read(request, agent, max(0.0, ends_at - time.monotonic()))
            except GoneError as error:  # it is read again from what the job has counted
                log.warning("an agent does not have what was planned any more", extra={"agent": agent, "error": str(error)})
                return None
            except VersionError as error:  # the process that plans detects this too, and plans no more for it
                log.error("an agent's rows cannot be read", extra={"agent": agent, "address": address, "error": str(error)})
                return None
            except AgentError as error:
                if str(error) != logged:
                    log.warning("read failed", extra={"agent": agent, "address": address, "reason": error.reason, "error": str(error)})
                    logged = str(error)
                to.close()
        if time.monotonic() > gives_up_at:
            log.error("range not delivered now, it will be planned again", extra={"agent": agent, "upto": request.upto})
            return None
        time.sleep(_PAUSE_SECONDS)


def client(address: str, files: ClientFiles = NO_FILES) -> AgentClient:
    """The connection of this process to an address."""
    return line(address, files).client


class Backoff:
    """Growing pauses for agents whose ranges are planned and do not arrive, so that others do not wait for their reads.

    The first range that does not arrive may be chance. The pauses begin with the second one. Each time a range may take twice as long: it
    may be a link that is slow, and what did not arrive is sent with what follows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._missed: dict[str, int] = {}
        self._until: dict[str, float] = {}

    def awake(self, addresses: Iterable[str]) -> list[str]:
        """The agents that are planned for now."""
        now = self._clock()
        return [address for address in addresses if self._until.get(address, now) <= now]

    def note(self, address: str, *, missed: bool, alone: bool = False) -> None:
        """A plan reported whether something that was planned before is ``missed``. ``alone``: no other agent had to wait for it."""
        waited = self.seconds(address)
        self._missed[address] = count = self._missed.get(address, 0) + 1 if missed else 0
        pause = 2.0 ** min(5, count - 1) if alone else HELD_UP_SHARE * waited
        self._until[address] = self._clock() + (pause if count > 1 else 0.0)

    def wake(self, address: str) -> None:
        """It was put aside, and has answered since, with rows: its pause is over. The count of the ranges that it has missed goes on."""
        self._until.pop(address, None)

    def seconds(self, address: str) -> float:
        """How long the rows of the next range may take."""
        return min(STREAM_SECONDS, RANGE_SECONDS * 2.0 ** min(5, self._missed.get(address, 0)))

    def missing(self, addresses: Iterable[str]) -> list[str]:
        """The agents whose ranges have failed to arrive more than once."""
        return [address for address in addresses if self._missed.get(address, 0) > 1]
