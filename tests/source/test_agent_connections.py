"""Several agents behind one stream: one in trouble holds up nobody, and what it did not deliver comes later, once."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from streaming.broker.agent.call_answers import Messages, answers
from streaming.broker.agent.service import Service
from streaming.broker.protocol.agent_calls import Call, Reason
from streaming.broker.protocol.consumer_messages import Range
from streaming.broker.protocol.status_messages import StatusRequest
from streaming.errors import AgentError, SameAgentError, VersionError
from streaming.simulator.log import PartitionLog
from streaming.spark.client.address_lookup import NO_FILES
from streaming.spark.client.agent_client import STREAM_SECONDS, AgentClient
from streaming.spark.source import agent_connections
from streaming.spark.source.agent_connections import (
    LOGGED_SECONDS,
    MOST_LOGGED,
    RANGE_SECONDS,
    SOUND_SECONDS,
    AgentLine,
    Backoff,
    ask_all,
    line,
    misfits,
    read_unanswered,
    unanswered,
    unanswered_path,
    unwelcome,
    write_unanswered,
)
from streaming.spark.source.counted_file import NOTHING_COUNTED, Arrived
from tests.agents import Agent, served
from tests.builders import batch, log_dir, partition
from tests.clocks import Clock
from tests.limits import SECONDS
from tests.source.event_reading import ALL, Stream, agent_has_seen

_Answer = TypeVar("_Answer")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents in trouble are asked again as soon as there is time, and reads are given up at once."""
    monkeypatch.setattr(agent_connections, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "LONGEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "PATIENCE_SECONDS", 0.0)


class Host:
    """A broker's host with one log, and its agent."""

    def __init__(self, tmp_path: Path, number: int, name: str = "") -> None:
        self.log: PartitionLog = partition(log_dir(tmp_path, f"d{number}", broker=number), f"t{number}", topic_id=number)
        self.log.append(batch(3))
        self.agent = Agent(self.log.directory.parent, name=name or f"a{number}")


@pytest.fixture
def counted(tmp_path: Path) -> Path:
    return tmp_path / "counted"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[list[Host]]:
    made = [Host(tmp_path, number) for number in (1, 2, 3)]
    yield made
    for host in made:
        host.agent.close()


def test_all_agents_are_planned_and_read_together(hosts: list[Host], counted: Path) -> None:
    with ExitStack() as stack:
        stream = Stream(*(stack.enter_context(host.agent.served()) for host in hosts), counted=counted)
        stream.until(lambda records: records == {"t1": 3, "t2": 3, "t3": 3})
        assert sorted(stream.end) == ["a1", "a2", "a3"]


def test_one_that_is_down_holds_up_nobody_and_its_rows_come_when_it_is_back(hosts: list[Host], counted: Path) -> None:
    two = hosts[1]
    with ExitStack() as stack:
        with ExitStack() as first:
            served = [(first if host is two else stack).enter_context(host.agent.served()) for host in hosts]
            stream = Stream(*served, counted=counted)
            stream.until(lambda records: records == {"t1": 3, "t2": 3, "t3": 3})
        for host in hosts:
            host.log.append(batch(2))
        stream.until(lambda records: records["t1"] == records["t3"] == 5)
        assert stream.records["t2"] == 3
        with two.agent.served(port=int(served[1].rpartition(":")[2])):
            stream.until(lambda records: records["t2"] == 5)
    assert stream.skipped == 0


def test_one_that_dies_between_planning_and_reading_delivers_later_and_once(hosts: list[Host], counted: Path) -> None:
    one, two = hosts[:2]
    with one.agent.served() as first:
        with two.agent.served() as second:
            stream = Stream(first, second, counted=counted)
            stream.until(lambda records: records == {"t1": 3, "t2": 3})
            for host in (one, two):
                host.log.append(batch(4))
                agent_has_seen(host.agent, host.log)
            following = stream.reader.latestOffset(stream.end, ALL)
            assert following["a2"]["seq"] > stream.end["a2"]["seq"]
        two.agent.restart()
        stream.take(following)
        assert stream.records == {"t1": 7, "t2": 3}
        with two.agent.served(port=int(second.rpartition(":")[2])):
            stream.until(lambda records: records["t2"] == 7)
            stream.step()
    assert (stream.records, stream.skipped) == ({"t1": 7, "t2": 7}, 0)


def test_one_that_hangs_is_waited_for_once(hosts: list[Host], monkeypatch: pytest.MonkeyPatch, counted: Path) -> None:
    one, two = hosts[:2]
    hangs, go_on, waiting = threading.Event(), threading.Event(), []
    plan, status = Service.plan, Service.status

    def hang(self: Service, *asked: Any) -> Any:
        if self.name == "a2" and hangs.is_set():
            waiting.append(asked)
            go_on.wait()
        return plan(self, *asked)

    def hang_too(self: Service, *asked: Any) -> Any:
        if self.name == "a2" and hangs.is_set():
            go_on.wait()
        return status(self, *asked)

    monkeypatch.setattr(Service, "plan", hang)
    monkeypatch.setattr(Service, "status", hang_too)
    with one.agent.served() as first, two.agent.served() as second:
        stream = Stream(first, second, counted=counted)
        stream.until(lambda records: records == {"t1": 3, "t2": 3})
        monkeypatch.setattr("streaming.spark.client.agent_client.ANSWER_SECONDS", 0.2)
        hangs.set()
        try:
            for count in (5, 7, 9):
                one.log.append(batch(2))
                stream.until(lambda records, count=count: records["t1"] == count)
            assert len(waiting) == 1  # nobody waited for its plan again
        finally:
            hangs.clear()
            go_on.set()
        two.log.append(batch(1))
        stream.until(lambda records: records["t2"] == 4)
    assert stream.skipped == 0


@pytest.mark.parametrize("call", [Call.STATUS, Call.REGISTER, Call.PLAN, Call.EVENTS])
def test_whatever_one_does_not_answer_the_others_rows_go_on(
    call: str, hosts: list[Host], monkeypatch: pytest.MonkeyPatch, counted: Path
) -> None:
    one, two = hosts[:2]
    hangs, go_on = threading.Event(), threading.Event()
    known = answers(two.agent.service)

    def held(body: bytes, principal: str) -> Messages:
        if hangs.is_set():
            go_on.wait(SECONDS)
        yield from known[call](body, principal)

    with one.agent.served() as first, two.agent.served(), served({**known, call: held}) as second:
        stream = Stream(first, second, counted=counted)
        stream.until(lambda records: records == {"t1": 3, "t2": 3})
        monkeypatch.setattr(agent_connections, "REFUSED_SECONDS", 0.0)
        for module, name in (
            ("client.agent_client", "ANSWER_SECONDS"),
            ("client.agent_client", "CHECK_SECONDS"),
            ("client.agent_client", "REGISTER_SECONDS"),
            ("source.agent_connections", "RANGE_SECONDS"),
        ):
            monkeypatch.setattr(f"streaming.spark.{module}.{name}", 0.2)
        hangs.set()
        try:
            for count in (5, 7, 9, 11):
                one.log.append(batch(2))
                two.log.append(batch(1))
                stream.until(lambda records, count=count: records["t1"] == count)
        finally:
            hangs.clear()
            go_on.set()
        stream.reader._backoff = Backoff(lambda: 0.0)
        stream.until(lambda records: records["t2"] == 7)
    assert stream.skipped == 0


def test_a_call_that_does_not_even_end_costs_its_agent_alone(hosts: list[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    """The look-up of a name, or what nobody has thought of: it is not waited for, and the agent is asked nothing else meanwhile."""
    monkeypatch.setattr(agent_connections, "GRACE_SECONDS", 0.0)
    ends, asked = threading.Event(), list[str]()

    def question(client: AgentClient) -> str:
        asked.append(client.address)
        if client.address == second:
            ends.wait(SECONDS)
        return client.status().agent

    with hosts[0].agent.served() as first, hosts[1].agent.served() as second:
        for _ in range(3):
            assert ask_all([first, second], question, seconds=0.2) == {first: "a1"}
        assert asked.count(second) == 1
        assert [(address, error.reason) for address, error in unanswered([first, second]).items()] == [(second, Reason.SILENT)]
        ends.set()
        while second not in (found := ask_all([first, second], question)):
            pass
        assert found == {first: "a1", second: "a2"}
        assert unanswered([first, second]) == {}


def test_one_whose_rows_do_not_arrive_rests_between(hosts: list[Host], monkeypatch: pytest.MonkeyPatch, counted: Path) -> None:
    """It plans well and reads badly, as over a link that is too slow."""
    one, two = hosts[:2]
    reads: list[str] = []
    real_read = AgentClient.read
    broken = {"a2"}

    def fail(self: AgentClient, asked: Range, agent: str, seconds: float) -> Any:
        name = self.status().agent
        reads.append(name)
        if name in broken:
            raise AgentError("too slow", Reason.SILENT)
        return real_read(self, asked, agent, seconds)

    with one.agent.served() as first, two.agent.served() as second:
        stream = Stream(first, second, counted=counted)
        now = [0.0]
        stream.reader._backoff = Backoff(lambda: now[0])
        stream.until(lambda records: records == {"t1": 3, "t2": 3})
        monkeypatch.setattr(AgentClient, "read", fail)
        for count in range(4, 24):
            one.log.append(batch(1))
            two.log.append(batch(1))
            agent_has_seen(two.agent, two.log)
            stream.until(lambda records, count=count: records["t1"] == count)
        assert reads.count("a1") >= 20
        assert reads.count("a2") <= 3
        broken.clear()
        now[0] = 1000.0
        stream.until(lambda records: records["t2"] == 23)
    assert stream.skipped == 0


def test_one_of_another_cluster_is_not_even_registered(hosts: list[Host], tmp_path: Path, counted: Path) -> None:
    strange = Agent(log_dir(tmp_path, "strange", cluster_id="ZZZZZZZZZZZZZZZZZZZZZZ").path, name="strange")
    try:
        with hosts[0].agent.served() as first, strange.served() as other:
            stream = Stream(first, other, counted=counted, cluster_id=hosts[0].agent.service.status().cluster_id)
            stream.until(lambda records: records == {"t1": 3})
            assert list(stream.end) == ["a1"]
            assert strange.jobs.furthest() == -1
            error = line(other, NO_FILES).error
            assert error is not None
            assert error.reason == Reason.OTHER_CLUSTER
    finally:
        strange.close()


def test_of_two_with_one_name_the_one_whose_journal_the_job_knows_takes_part(hosts: list[Host], tmp_path: Path, counted: Path) -> None:
    twin = Host(tmp_path, 9, name="a1")
    try:
        with hosts[0].agent.served() as first, twin.agent.served() as second:
            for addresses in ((first, second), (second, first)):
                stream = Stream(*addresses, counted=counted)
                counted_there = replace(NOTHING_COUNTED, arrived={"a1": Arrived(f"{twin.agent.journal.id}.7", 0)})
                stream.reader._register(addresses, counted_there)
                assert list(stream.reader._registered) == [second]
    finally:
        twin.agent.close()


def test_whoever_wants_everything_gets_it_of_no_two_agents_with_one_name(hosts: list[Host], tmp_path: Path, counted: Path) -> None:
    """What the second has would be left out without a word in the exit status. One agent at two addresses leaves nothing out."""
    twin = Host(tmp_path, 9, name="a1")
    try:
        with hosts[0].agent.served() as first, twin.agent.served() as second:
            with pytest.raises(AgentError, match=r"it has the name of another agent, .* start each agent with a name of its own"):
                Stream(first, second, counted=counted).reader._everything(NOTHING_COUNTED)
            both = Stream(
                first, first.replace("127.0.0.1", "127.1"), counted=counted
            )  # of localhost, an agent of another test may have the IPv6 one
            assert list(both.reader._everything(NOTHING_COUNTED)) == ["a1"]
    finally:
        twin.agent.close()


def test_an_agent_at_two_addresses_is_one_although_its_consumer_began_between_its_answers(hosts: list[Host], counted: Path) -> None:
    service = hosts[0].agent.service
    before = service.status(StatusRequest(consumer="job"))
    with hosts[0].agent.served() as address:
        Stream(address, counted=counted, consumer="job").until(lambda records: records == {"t1": 3})
        after = service.status(StatusRequest(consumer="job"))
    assert before.journal != after.journal
    found = unwelcome({"127.1:1": after}, {"127.0.0.1:1": before}, {}, "")
    assert [*map(type, found.values())] == [SameAgentError]


def test_two_jobs_share_an_agent_and_each_gets_everything(hosts: list[Host], counted: Path) -> None:
    with hosts[0].agent.served() as address:
        one, two = (Stream(address, counted=counted.with_name(name), consumer=name) for name in ("one", "two"))
        one.until(lambda records: records == {"t1": 3})
        hosts[0].log.append(batch(2))
        two.until(lambda records: records == {"t1": 5})
        one.until(lambda records: records == {"t1": 5})
    assert one.skipped == two.skipped == 0


def test_two_agents_on_one_log_dir_count_once(hosts: list[Host], tmp_path: Path, counted: Path) -> None:
    second = Agent(hosts[0].log.directory.parent, name="again")
    try:
        with hosts[0].agent.served() as one, second.served() as two:
            stream = Stream(one, two, counted=counted)
            stream.until(lambda records: records == {"t1": 3} and len(stream.end) == 2)
            hosts[0].log.append(batch(2))
            stream.until(lambda records: records == {"t1": 5})
            for host in (hosts[0].agent, second):
                agent_has_seen(host, hosts[0].log)
            stream.step()
            stream.step()
            assert stream.records == {"t1": 5}
    finally:
        second.close()
    assert stream.skipped == 0


# --- a line


def test_what_is_wrong_is_reported_once_and_each_time_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    to = AgentLine("nobody:1", NO_FILES)

    def fails(words: str) -> Callable[[AgentClient], None]:
        def question(_: AgentClient) -> None:
            raise AgentError(words, Reason.REFUSED)

        return question

    def ask(question: Callable[[AgentClient], _Answer]) -> _Answer | None:
        return to.answer(_ended(to.ask(question)))

    for words in ("one", "one", "two", "two"):
        assert ask(fails(words)) is None
    assert [getattr(record, "error", "") for record in caplog.records] == ["one", "two"]
    assert ask(lambda _: "answer") == "answer"
    ask(fails("two"))
    assert len(caplog.records) == 3


def test_one_that_answers_how_it_is_and_nothing_else_is_left_alone_for_ever_longer(
    hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_connections, "LONGEST_PAUSE_SECONDS", 10.0)
    clock, pauses = Clock(1000.0), list[float]()

    def plans(_: AgentClient) -> None:
        raise AgentError("it does not answer in time", Reason.SILENT)

    with hosts[0].agent.served() as address:
        to = AgentLine(address, NO_FILES, clock)
        for _ in range(8):
            assert to.answer(_ended(to.ask(plans)), Call.PLAN) is None
            began = clock.now
            while not to.is_available():
                if to._aside is None:
                    clock.now += 0.5
            assert to.answer(_ended(to.ask(AgentClient.status))) is not None
            assert [*to.unanswered] == [Call.PLAN]  # that it answers how it is does not end this
            pauses.append(clock.now - began)
        assert pauses == [0, 10, 20, 40, 80, 160, 160, 160]
        assert to.answer(_ended(to.ask(lambda _: "a plan")), Call.PLAN) == "a plan"
        assert to.unanswered == {}
        clock.now += SOUND_SECONDS
        to.answer(_ended(to.ask(plans)), Call.PLAN)
        while not to.is_available():  # at once: long ago is forgotten
            pass
        to.client.close()


def test_an_agent_that_varies_its_words_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock(1000.0)
    to = AgentLine("nobody:1", NO_FILES, clock)
    for number in range(100):
        to.refuse(AgentError(f"{number}", Reason.FAILED))
    assert len(caplog.records) == MOST_LOGGED
    clock.now += LOGGED_SECONDS
    to.refuse(AgentError("another", Reason.FAILED))
    assert len(caplog.records) == MOST_LOGGED + 1


def _ended(asked: Future[_Answer]) -> Future[_Answer]:
    wait([asked])
    return asked


def test_what_the_query_finds_out_about_agents_is_read_as_it_was_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = unanswered_path(tmp_path / "checks")
    assert read_unanswered(path) == {}
    for written in ({"a:1": AgentError("\x1b é" * 1000, Reason.SILENT), "b:2": AgentError("no plan", Reason.PROTOCOL)}, {}):
        write_unanswered(path, written)
        found = read_unanswered(path)
        assert {address: (str(error), error.reason) for address, error in found.items()} == {
            address: (str(error)[:500], error.reason) for address, error in written.items()
        }
    assert not caplog.records
    for broken in (b"{", b"[1]", b'{"a": 1}', b'{"a": ["words", "no reason"]}', b"\xff"):
        path.write_bytes(broken)
        assert read_unanswered(path) == {}
    assert len(caplog.records) == 5


def test_an_agent_of_another_version_is_understood_or_not_from_its_first_answer_on(hosts: list[Host]) -> None:
    with hosts[0].agent.served() as address:
        to = AgentLine(address, NO_FILES)
        known = to.client.status()
        later = replace(known, protocol=known.protocol + 100)
        assert to.misfit(known) is None
        for _ in range(2):
            refused = to.misfit(later)
            assert isinstance(refused, VersionError)
            assert refused is to.misfit(later)  # it is not asked each time
            assert to.misfit(known) is None
        to.client.close()


def test_one_that_is_busy_with_others_rows_takes_part_as_soon_as_it_sends_some(hosts: list[Host], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_connections, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "GRACE_SECONDS", 0.0)
    known, sends = answers(hosts[0].agent.service), threading.Event()

    def busy(body: bytes, principal: str) -> Messages:
        sends.wait(SECONDS)
        yield from known[Call.EVENTS](body, principal)

    with served({**known, Call.EVENTS: busy}) as address:
        monkeypatch.setattr("streaming.spark.client.agent_client.CHECK_SECONDS", float(SECONDS))
        to, status = line(address), hosts[0].agent.service.status()
        (error,) = misfits({address: status}).values()
        assert error.reason == Reason.SILENT
        to.refuse(error)
        assert not to.is_available()
        sends.set()
        while not to.is_available():  # it is not left alone for `REFUSED_SECONDS`
            pass
        assert misfits({address: status}) == {}
        to.client.close()


def test_an_agent_that_answers_is_asked_and_nobody_else() -> None:
    assert ask_all([], AgentClient.status) == {}


@pytest.mark.parametrize(("alone", "expected"), [(True, [0, 2, 4, 8, 16, 32, 32]), (False, [0, 180, 270, 270, 270, 270, 270])])
def test_rests_grow_and_end_with_the_first_range_that_arrives(*, alone: bool, expected: list[float]) -> None:
    """Where others wait, they have waited for a tenth of the time at most, but for the first two ranges."""
    now = [0.0]
    rests = Backoff(lambda: now[0])
    pauses = []
    for _ in expected:
        rests.note("a", missed=True, alone=alone)
        began = now[0]
        while not rests.awake(["a"]):
            now[0] += 0.5
        pauses.append(now[0] - began)
    assert pauses == expected
    assert rests.missing(["a", "b"]) == ["a"]
    rests.note("a", missed=True, alone=alone)
    assert rests.awake(["a", "b"]) == ["b"]
    rests.wake("a")
    assert rests.awake(["a", "b"]) == ["a", "b"]
    assert rests.missing(["a"]) == ["a"]
    rests.note("a", missed=False)
    rests.note("a", missed=True)
    assert rests.awake(["a", "b"]) == ["a", "b"]
    assert rests.missing(["a"]) == []


def test_a_range_that_does_not_arrive_gets_more_time_up_to_that_of_a_stream() -> None:
    rests, given = Backoff(lambda: 0.0), []
    for _ in range(4):
        given.append(rests.seconds("a"))
        rests.note("a", missed=True)
    assert given == [RANGE_SECONDS, 2 * RANGE_SECONDS, STREAM_SECONDS, STREAM_SECONDS]
