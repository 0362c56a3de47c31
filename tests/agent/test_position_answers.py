"""An agent's answers by positions: the same for everybody, bounded whatever is asked, and cheap where nothing has changed."""

import base64
import json
import os
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.agent import position_answers
from streaming.broker.agent.position_answers import PRINCIPALS_WAITING, WAITING, PositionAnswers
from streaming.broker.agent.slots import Slots
from streaming.broker.disk.logdirs import TopicIds, open_log_dirs
from streaming.broker.excerpts.position_plan import OpenLog
from streaming.broker.protocol.agent_calls import POSITIONS_BYTES
from streaming.broker.protocol.position_messages import MOST_LOGS, Between, BetweenRequest, Reached, ReachRequest, Selected
from streaming.broker.protocol.versions import OLDEST_JOB
from streaming.common.log_positions import LogName, Position, pack, unpack
from streaming.errors import AgentError, VersionError
from streaming.simulator.log import LogDir, PartitionLog
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent
from tests.builders import batch, log_dir, partition
from tests.clocks import Clock

FIRST = ReachRequest(broker=1, at="", first=True, start="earliest", selected=Selected([], "", []), budget=None)
NAME = LogName("orders", 0)


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    return log_dir(tmp_path)


@pytest.fixture
def log(disk: LogDir) -> PartitionLog:
    made = partition(disk, "orders")
    made.append(batch(3))
    return made


@pytest.fixture
def asked(disk: LogDir, log: PartitionLog) -> PositionAnswers:
    return PositionAnswers("a1", open_log_dirs([disk.path]))


def after(found: Reached, request: ReachRequest = FIRST) -> ReachRequest:
    """What is asked next by whoever has that answer."""
    return replace(request, at=pack({**unpack(request.at), **unpack(found.changed)}), first=False)


def between(answers: PositionAnswers, before: str, to: str) -> Between:
    messages = [Between.decode(each) for each in answers.between(BetweenRequest(broker=1, before=before, to=to, excerpt_bytes=1 << 30))]
    assert [each.last for each in messages] == [False] * (len(messages) - 1) + [True]
    found = ([one for each in messages for one in each.excerpts], [one for each in messages for one in each.missing])
    return replace(messages[-1], excerpts=found[0], missing=found[1])


def test_a_plan_has_what_changed_and_nothing_else(asked: PositionAnswers, disk: LogDir, log: PartitionLog) -> None:
    found = asked.reached(FIRST)
    assert unpack(found.changed)[NAME].next_offset == 3
    again = asked.reached(after(found))
    assert (again.changed, again.absent, again.available, again.matched, again.brokers) == ("", "", "", 1, [1])
    partition(disk, "more", topic_id=2).append(batch(2))
    assert {*unpack(asked.reached(after(found)).changed)} == {LogName("more", 0)}
    elsewhere = asked.reached(replace(FIRST, broker=2))
    assert (elsewhere.changed, elsewhere.away) == ("", ["any log dir of broker 2"]), "nothing is known of it"


def test_a_budget_says_what_is_left(asked: PositionAnswers, log: PartitionLog) -> None:
    log.roll()
    log.append(batch(4))
    found = asked.reached(replace(FIRST, budget=1))
    assert (unpack(found.changed)[NAME].next_offset, unpack(found.available)[NAME].next_offset) == (3, 7)


def test_what_lies_between_two_positions_is_excerpts_to_scan(asked: PositionAnswers, log: PartitionLog) -> None:
    at = asked.reached(FIRST).changed
    log.append(batch(4))
    log.roll()
    log.append(batch(5))
    to = asked.reached(replace(FIRST, at=at, first=False)).changed
    found = between(asked, at, to)
    assert [(each.segment, each.from_offset, each.until_offset) for each in found.excerpts] == [(0, 3, 7), (7, 7, 12)]
    assert (found.missing, found.absent) == ([], "")


def test_in_messages_of_some(asked: PositionAnswers, log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_answers, "MOST_AT_ONCE", 1)
    log.roll()
    log.append(batch(5))
    assert len(between(asked, "", asked.reached(FIRST).changed).excerpts) == 2


def test_a_log_that_it_lacks_is_absent_and_not_gone(asked: PositionAnswers, log: PartitionLog) -> None:
    other = {LogName("elsewhere", 7): Position("x", 5)}
    assert {*unpack(asked.reached(replace(FIRST, at=pack(other), first=False)).absent)} == {*other}
    found = between(asked, "", pack(other))
    assert ({*unpack(found.absent)}, found.missing) == ({*other}, [])


def test_a_log_that_cannot_be_read_holds_up_no_other(
    disk: LogDir, log: PartitionLog, asked: PositionAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition(disk, "payments", topic_id=2).append(batch(3))
    real = OpenLog.open

    def refused(*given: Any) -> OpenLog | None:
        if given[0].topic == "orders":
            raise PermissionError(13, "Permission denied", "orders-0")
        return real(*given)

    monkeypatch.setattr(OpenLog, "open", refused)
    found = asked.reached(FIRST)
    assert ({*unpack(found.changed)}, found.away) == ({LogName("payments", 0)}, [f"{disk.path / 'orders-0'}: Permission denied"])
    with pytest.raises(AgentError, match="orders-0 cannot be read: Permission denied"):
        between(asked, "", pack({NAME: Position("x", 5)}))


def test_a_log_dir_that_cannot_be_used_is_away(tmp_path: Path, disk: LogDir, log: PartitionLog) -> None:
    dirs = open_log_dirs([disk.path])
    answers = PositionAnswers("a1", dirs)
    at = answers.reached(FIRST).changed
    dirs.bar(disk.path, "does not answer")
    found = answers.reached(replace(FIRST, at=at, first=False))
    assert ({*unpack(found.absent)}, found.away) == ({NAME}, [str(disk.path)])
    assert between(answers, "", at).away == [str(disk.path)]


def test_a_plan_without_changes_opens_and_parses_nothing(
    asked: PositionAnswers, disk: LogDir, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.utime(disk.path / log.name, (1, 1))
    at, late = asked.reached(FIRST), asked.reached(replace(FIRST, start="latest"))
    assert late.changed != at.changed, "another reader, that began elsewhere"
    opened, parsed = list[str](), list[Path]()
    real, read = OpenLog.open, TopicIds.read
    monkeypatch.setattr(OpenLog, "open", lambda *given: opened.append(given[0].topic) or real(*given))
    monkeypatch.setattr("streaming.broker.disk.logdirs._parse", lambda directory: parsed.append(directory) or read)
    for _ in range(2):
        for found in (at, late):
            assert asked.reached(after(found)).changed == ""
    assert (opened, parsed) == ([], [])


# --- a plan that waits


class Growing(Clock):
    """A clock on which a log grows after a while."""

    def __init__(self, log: PartitionLog, at: float) -> None:
        super().__init__()
        self.log, self.at = log, at

    def wait(self, seconds: float) -> None:
        self.sleep(seconds)
        if sum(self.slept) >= self.at and self.log.log_end_offset == 3:
            self.log.append(batch(4))


def test_a_plan_waits_until_something_is_new(disk: LogDir, log: PartitionLog) -> None:
    clock = Growing(log, 1.0)
    answers = PositionAnswers("a1", open_log_dirs([disk.path]), clock, clock.wait)
    request = replace(after(answers.reached(FIRST)), wait_ms=600_000)
    assert unpack(answers.reached(request).changed)[NAME].next_offset == 7
    assert 1.0 <= sum(clock.slept) < 2.0


def test_and_not_for_ever_nor_many_at_once(disk: LogDir, log: PartitionLog) -> None:
    clock = Growing(log, float("inf"))
    answers = PositionAnswers("a1", open_log_dirs([disk.path]), clock, clock.wait)
    request = replace(after(answers.reached(FIRST)), wait_ms=600_000)
    assert answers.reached(request).changed == ""
    assert sum(clock.slept) == pytest.approx(position_answers.MOST_WAIT_SECONDS)


def test_a_token_has_some_of_the_places_to_wait_and_all_tokens_have_a_few() -> None:
    room = Slots(WAITING, PRINCIPALS_WAITING)
    places = [room.slot("me") for _ in range(PRINCIPALS_WAITING + 1)]
    assert [each.__enter__() for each in places] == [True] * PRINCIPALS_WAITING + [False]
    others = [room.slot(f"other {number // PRINCIPALS_WAITING}") for number in range(WAITING - PRINCIPALS_WAITING + 1)]
    assert [each.__enter__() for each in others] == [True] * (WAITING - PRINCIPALS_WAITING) + [False]
    places[0].__exit__(None, None, None)
    with room.slot("me") as free:
        assert free


# --- what nobody means


def packed(value: object) -> str:
    return base64.b64encode(zlib.compress(json.dumps(value).encode())).decode()


WRONG = (
    *("!", "AAAA", packed(7), packed([[]]), packed([["t", "", [0], [0], [7], []]]), packed([["t", "", [0], [], [""], []]])),
    *(packed([["t", "", [0], [-5], [""], []]]), packed([["t", "", [0], [2**70], [""], []]]), packed([["t", "", [True], [0], [""], []]])),
    *(packed([["t", "", [0], [0], ["3@"], []]]), packed([["t", "", [0], [0], ["1@0 " * 500], []]]), packed([[{}, "", [0], [0], [""], []]])),
    base64.b64encode(zlib.compress(b"[" * 100_000)).decode(),
    base64.b64encode(zlib.compress(b" " * (600 * MOST_LOGS), 9)).decode(),
    packed([["t", "", list(range(MOST_LOGS + 1)), [0] * (MOST_LOGS + 1), [""] * (MOST_LOGS + 1), []]]),
)


@pytest.mark.parametrize("wrong", range(len(WRONG)))
def test_positions_that_are_none_are_refused(asked: PositionAnswers, wrong: int) -> None:
    with pytest.raises(AgentError, match="no positions: "):
        asked.reached(replace(FIRST, at=WRONG[wrong]))
    with pytest.raises(AgentError, match="no positions: "):
        between(asked, "", WRONG[wrong])


def test_requests_have_bounds(asked: PositionAnswers) -> None:
    for request, words in (
        (replace(FIRST, start="noon"), "no such start: 'noon'"),
        (replace(FIRST, selected=Selected([], "(", [])), r"no such pattern of topics: '\('"),
    ):
        with pytest.raises(AgentError, match=words):
            asked.reached(request)
    with pytest.raises(AgentError, match="1048576 bytes or more"):
        list(asked.between(BetweenRequest(broker=1, before="", to="", excerpt_bytes=1)))
    for old in (
        lambda: asked.reached(replace(FIRST, protocol=OLDEST_JOB - 1)),
        lambda: list(asked.between(BetweenRequest(broker=1, before="", to="", excerpt_bytes=1 << 20, protocol=OLDEST_JOB - 1))),
    ):
        with pytest.raises(VersionError):
            old()


def test_names_of_no_log_are_names_of_no_file(asked: PositionAnswers, tmp_path: Path) -> None:
    odd = {LogName(topic, number): Position("x", 5) for topic in ("../orders", "/etc", "", "orders-0", "\0") for number in (0, -1)}
    assert {*unpack(asked.reached(replace(FIRST, at=pack(odd), first=False)).absent)} == {*odd}
    assert {*unpack(between(asked, "", pack(odd)).absent)} == {*odd}


def test_positions_of_many_logs_fit_into_a_request(agent: Agent) -> None:
    many = {LogName(f"topic-{item // 20}", item % 20): Position(f"{item // 20:022d}", item * 977, ((3, 0),)) for item in range(200_000)}
    with agent.served() as address:
        client = AgentClient(address)
        found = client.reach(replace(FIRST, at=pack(many), first=False))
        assert len(unpack(found.absent)) == len(many)
        longest = {name: replace_epochs(at, item) for item, (name, at) in enumerate(many.items())}
        with pytest.raises(AgentError, match=f"and an agent takes {POSITIONS_BYTES >> 20}: read fewer topics in one query"):
            client.reach(replace(FIRST, at=pack(longest), first=False))
        client.close()


def replace_epochs(at: Position, item: int) -> Position:
    return at._replace(epochs=tuple((item * 7919 % 100_003 + number, item * 104_729 % 10**9 + number) for number in range(8)))
