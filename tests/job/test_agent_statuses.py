"""What the metrics say of a job's agents: real agents over HTTP, and every way in which one does not take part."""

import http.server
import logging
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.agent.security import ServerFiles
from streaming.broker.agent.service import Service
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import Register
from streaming.broker.protocol.status_messages import BlockedFile, CatalogPart, Status, StatusRequest, UnreadableLog
from streaming.broker.watcher.watcher import RESCAN_MS
from streaming.cluster.view.observer import Observer
from streaming.cluster.view.table import Table
from streaming.cluster.view.transaction_columns import HangingTransaction
from streaming.cluster.view.view import view
from streaming.errors import AgentError
from streaming.simulator.batch_writer import Batch
from streaming.simulator.coordinators import offset_commit_record
from streaming.spark.client.address_lookup import ClientFiles
from streaming.spark.client.agent_client import AgentClient
from streaming.spark.job import agent_statuses
from streaming.spark.job.agent_statuses import CLOCK_SECONDS, GONE_SECONDS, STUCK_SECONDS, AgentWatch, cluster_of, status_of
from streaming.spark.source import agent_connections
from streaming.spark.source.job_options import SourceOptions, parse_options
from tests.agents import Agent, poll_until
from tests.builders import CLUSTER_ID, batch, log_dir, partition
from tests.certificates import OTHER_TOKEN, TOKEN, Authority, token_file
from tests.exposition.reading import page, samples
from tests.limits import SECONDS
from tests.view.rows import new_observer, new_table

METADATA = Path(__file__).parents[1] / "data" / "metadata" / "unclean_election" / "log.bin"
OTHER_CLUSTER = "ZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents in trouble are asked again as soon as there is time."""
    monkeypatch.setattr(agent_connections, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "LONGEST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(agent_connections, "REFUSED_SECONDS", 0.0)


class Stage:
    """Agents, and a job's look at them."""

    def __init__(self, tmp_path: Path, stack: ExitStack) -> None:
        self._tmp_path = tmp_path
        self._stack = stack
        self.table: Table = new_table()
        self.observer: Observer = new_observer()

    def agent(self, name: str, *, broker: int = 1, cluster_id: str = CLUSTER_ID, disk: str = "") -> Agent:
        path = self._tmp_path / (disk or name)
        if not path.exists():
            partition(log_dir(self._tmp_path, disk or name, broker=broker, cluster_id=cluster_id), "orders").append(batch(3))
            if not cluster_id:
                (path / "meta.properties").write_text(f"version=0\nbroker.id={broker}\n")
        made = Agent(path, name=name)
        self._stack.callback(made.close)
        return made

    def serve(self, agent: Agent) -> str:
        return self._stack.enter_context(agent.served())

    def watch(self, *addresses: str, cluster_id: str = CLUSTER_ID, files: ClientFiles | None = None) -> AgentWatch:
        options: SourceOptions = parse_options({"agents": ",".join(addresses)})
        options = options if files is None else replace(options, files=files)
        watch = AgentWatch(options, self.observer, self.table, lambda: 0.0, names=[], cluster_id=cluster_id)
        self._stack.callback(watch.close)
        return watch

    def reported(self, name: str) -> dict[tuple[str, ...], float]:
        """The values of one series name on the page, by agent and what else distinguishes them."""
        found = samples(page(self.table, self.observer))
        return {
            tuple(value for label, value in sorted(labels) if label != "broker"): value
            for (each, labels), value in found.items()
            if each == name
        }

    @property
    def up(self) -> dict[str, float]:
        return {agent: value for (agent,), value in self.reported("segtail_agent_up").items()}

    @property
    def problems(self) -> set[tuple[str, ...]]:
        return set(self.reported("segtail_agent_problem"))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ExitStack() as stack:
        yield Stage(tmp_path, stack)


def nobody() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


# --- up and down


def test_each_agent_is_up_for_itself(stage: Stage) -> None:
    one, two, away = stage.serve(stage.agent("a1")), stage.serve(stage.agent("a2", broker=2)), nobody()
    watch = stage.watch(one, two, away)
    poll_until(watch, lambda: watch.up == {"a1", "a2"})
    assert stage.up == {"a1": 1, "a2": 1, away: 0}
    assert stage.problems == {(away, "refused")}
    assert watch.up == {"a1", "a2"}


def test_one_that_goes_away_keeps_its_name_and_comes_back(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    agent, other = stage.agent("a1"), stage.serve(stage.agent("a2", broker=2))
    with agent.served() as address:
        watch = stage.watch(address, other)
        poll_until(watch, lambda: watch.up == {"a1", "a2"})
    for _ in range(3):
        poll_until(watch, lambda: stage.up == {"a1": 0, "a2": 1})
    assert stage.problems == {("a1", "refused")}
    assert not watch.quiet
    assert sum("agent is down" in record.message for record in caplog.records) == 1
    with agent.served(port=int(address.partition(":")[2])):
        poll_until(watch, lambda: stage.up == {"a1": 1, "a2": 1})
    assert stage.problems == set()


# --- logs that cannot be read


@pytest.mark.slow
def test_a_log_that_cannot_be_read_is_counted_and_named(stage: Stage, tmp_path: Path) -> None:
    agent = stage.agent("a1")
    segment = tmp_path / "a1" / "orders-0" / f"{0:020}.log"
    segment.rename(tmp_path / "kept")
    segment.symlink_to(segment)  # which nobody can open
    agent.service.register(Register("job", "earliest", resumed=False))
    watch = stage.watch(stage.serve(agent))
    poll_until(watch, lambda: bool(watch.unreadable))
    (log,) = watch.unreadable
    assert (log.broker, log.topic, log.partition, log.path, log.error) == (
        1,
        "orders",
        0,
        str(segment),
        "Too many levels of symbolic links",
    )
    assert stage.reported("segtail_unreadable_logs") == {(): 1}
    segment.unlink()
    (tmp_path / "kept").rename(segment)
    agent.now += RESCAN_MS  # by itself its clock needs twelve seconds for the minute until it looks again
    poll_until(watch, lambda: not watch.unreadable)
    assert stage.reported("segtail_unreadable_logs") == {(): 0}


def test_logs_are_named_that_an_agent_could_not_read_only_while_it_is_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    agent, status = stage.agent("a1"), Service.status
    log = UnreadableLog(1, "orders", 0, "", "/d/orders-0/0.log", "Input/output error")
    monkeypatch.setattr(Service, "status", lambda *asked: replace(status(*asked), unreadable_logs=[log]))
    with agent.served() as address:
        watch = stage.watch(address)
        poll_until(watch, lambda: watch.unreadable == [log])
    poll_until(watch, lambda: stage.up == {"a1": 0})
    assert watch.unreadable == []


# --- certificates and tokens


@contextmanager
def secured(agent: Agent, files: ServerFiles) -> Iterator[str]:
    with agent.listening(files) as where:
        yield f"https://{where.address}"


def test_wrong_tokens_and_certificates_are_reported_and_the_right_ones_are_taken_up(stage: Stage, tmp_path: Path) -> None:
    authority, foreign = Authority(tmp_path / "tls"), Authority(tmp_path / "foreign")
    mine, theirs = token_file(tmp_path / "mine", OTHER_TOKEN), token_file(tmp_path / "theirs")
    expired, strange = authority.issue("expired", expired=True), foreign.issue("strange")
    with (
        secured(stage.agent("a1"), authority.server(token_file=theirs)) as one,
        secured(stage.agent("a2", broker=2), ServerFiles(tls_cert=expired.cert, tls_key=expired.key)) as two,
        secured(stage.agent("a3", broker=3), ServerFiles(tls_cert=strange.cert, tls_key=strange.key)) as three,
        secured(stage.agent("a4", broker=4), authority.server(client_ca=True, name="four")) as four,
    ):
        watch = stage.watch(one, two, three, four, files=authority.client(token_file=mine))
        expected = {(one, "unauthorized"), (two, "untrusted"), (three, "untrusted"), (four, "protocol")}
        poll_until(watch, lambda: stage.problems == expected)
        token_file(mine, TOKEN)
        poll_until(watch, lambda: "a1" in watch.up and stage.problems == expected - {(one, "unauthorized")})


# --- what is there instead


def test_what_is_no_agent_is_named(stage: Stage) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as web:
        threading.Thread(target=web.serve_forever, args=(0.05,)).start()
        address = f"127.0.0.1:{web.server_port}"
        watch = stage.watch(address)
        poll_until(watch, lambda: stage.problems == {(address, "protocol")})
        web.shutdown()


def test_a_name_that_leads_nowhere_is_reported(stage: Stage) -> None:
    watch = stage.watch("dns:///agents.invalid:8815", stage.serve(stage.agent("a1")))
    poll_until(watch, lambda: stage.up == {"a1": 1, "dns:///agents.invalid:8815": 0})
    assert stage.problems == {("dns:///agents.invalid:8815", "unresolved")}


def test_an_agent_of_another_cluster_is_left_alone(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    strange = stage.serve(stage.agent("a2", cluster_id=OTHER_CLUSTER))
    watch = stage.watch(stage.serve(stage.agent("a1")), strange)
    poll_until(watch, lambda: stage.up == {"a1": 1, strange: 0} and stage.problems == {(strange, "other_cluster")})
    assert [status.agent for status in watch.poll()] == ["a1"]
    assert {labels[0] for labels in stage.reported("segtail_broker_info")} == {"a1"}


def test_a_new_job_is_for_the_cluster_of_its_agents_if_it_is_one(stage: Stage) -> None:
    one = stage.serve(stage.agent("a1"))
    watch = stage.watch(one, cluster_id="")
    poll_until(watch, lambda: watch.up == {"a1"})
    assert cluster_of(watch.poll()) == CLUSTER_ID
    assert cluster_of(stage.watch(nobody(), cluster_id="").poll()) == ""
    old = stage.serve(stage.agent("a0", cluster_id=""))
    alone, beside = stage.watch(old, cluster_id=""), stage.watch(one, old)
    poll_until(alone, lambda: alone.up == {"a0"})
    poll_until(beside, lambda: beside.up == {"a0", "a1"})
    assert (cluster_of(alone.poll()), cluster_of(beside.poll())) == ("", CLUSTER_ID), "a broker before 2.4 writes none"
    other = stage.serve(stage.agent("a2", cluster_id=OTHER_CLUSTER))
    watch = stage.watch(one, other, cluster_id="")
    poll_until(watch, lambda: watch.up == {"a1", "a2"})
    with pytest.raises(AgentError, match=f"a1: {CLUSTER_ID}; a2: {OTHER_CLUSTER}"):
        cluster_of(watch.poll())


def test_of_two_agents_with_one_name_one_takes_part(stage: Stage) -> None:
    one, two = sorted([stage.serve(stage.agent("same")), stage.serve(stage.agent("same", broker=2, disk="two"))])
    watch = stage.watch(two, one)
    for _ in range(3):
        poll_until(watch, lambda: stage.up == {"same": 1, two: 0} and stage.problems == {(two, "same_name")})


def test_two_agents_on_one_log_dir_are_reported(stage: Stage) -> None:
    watch = stage.watch(stage.serve(stage.agent("a1", disk="shared")), stage.serve(stage.agent("a2", disk="shared")))
    poll_until(watch, lambda: stage.up == {"a1": 1, "a2": 1})
    assert stage.problems == {("a1", "shared_log_dir"), ("a2", "shared_log_dir")}


def test_one_that_answers_how_it_is_and_not_the_query_is_down(stage: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    a, b = (stage.serve(stage.agent(name, broker=number)) for number, name in enumerate("ab", 1))
    watch, checks = stage.watch(a, b), tmp_path / "checks"
    path = agent_connections.unanswered_path(checks)
    path.write_text("of a query before")
    watch.begins(checks)
    poll_until(watch, lambda: stage.up == {"a": 1.0, "b": 1.0})
    agent_connections.write_unanswered(path, {b: AgentError(f"agent at {b}: it does not answer in time, asked for plan", Reason.SILENT)})
    poll_until(watch, lambda: stage.up == {"a": 1.0, "b": 0.0})
    assert stage.problems == {("b", "silent")}
    assert watch.up == {"a"}
    (record,) = (each for each in caplog.records if each.getMessage() == "agent is down")
    assert (record.__dict__["agent"], record.__dict__["error"]) == ("b", f"agent at {b}: it does not answer in time, asked for plan")
    agent_connections.write_unanswered(path, {})
    poll_until(watch, lambda: stage.up == {"a": 1.0, "b": 1.0})


def test_a_clock_is_compared_when_its_agent_answers_however_long_others_take(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (stage.serve(stage.agent(name, broker=number)) for number, name in enumerate("ab", 1))
    real, status, answered, later = time.time, AgentClient.status, threading.Event(), list[float]()

    def asked(self: AgentClient, request: StatusRequest | None = None) -> Status:
        if self.address == b and not later:
            answered.wait(SECONDS)
            later.append(6 * CLOCK_SECONDS)
        return status(self, request)

    def timed(client: AgentClient, request: StatusRequest) -> Any:
        found = real_timed(client, request)
        if client.address == a:
            answered.set()
        return found

    real_timed = agent_statuses._timed
    monkeypatch.setattr(agent_statuses, "_timed", timed)
    monkeypatch.setattr(AgentClient, "status", asked)
    monkeypatch.setattr(time, "time", lambda: real() + sum(later))
    stage.watch(a, b).poll()
    assert stage.up == {"a": 1.0, "b": 1.0}
    assert stage.problems == {("b", "clock")}


def test_a_clock_that_differs_is_reported(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = stage.agent("a1")
    status = Service.status

    def behind(*asked: Any) -> Status:
        answer = status(*asked)
        return replace(answer, now_ms=answer.now_ms - int(CLOCK_SECONDS * 2000))

    monkeypatch.setattr(Service, "status", behind)
    watch = stage.watch(stage.serve(agent))
    poll_until(watch, lambda: watch.up == {"a1"})
    assert stage.problems == {("a1", "clock")}
    assert -CLOCK_SECONDS * 2 - 5 < stage.reported("segtail_agent_clock_ahead_seconds")["a1",] < -CLOCK_SECONDS * 2 + 5


def test_an_agent_whose_watcher_gives_no_sign_of_life_is_down_and_one_that_waits_for_a_file_is_not(stage: Stage) -> None:
    stated = stage.agent("a").service.status()
    shown = status_of(replace(stated, silent_seconds=STUCK_SECONDS + 1), "h:1", frozenset(), None)
    assert (shown.up, shown.problems) == (False, ("stuck",))
    blocked = [BlockedFile(1, "/d", "/d/t-0/0.log", 9.0)]
    shown = status_of(replace(stated, silent_seconds=STUCK_SECONDS - 1, blocked=blocked), "h:1", frozenset(), None)
    assert (shown.up, shown.problems, shown.blocked) == (True, ("blocked",), tuple(blocked))


def test_counts_of_partitions_are_sent_again_only_when_they_change(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = stage.agent("a")
    folder = tmp_path / "a" / "__cluster_metadata-0"
    folder.mkdir()
    shutil.copy(METADATA, folder / "00000000000000000000.log")
    agent.look()
    answered: list[str] = []
    whole = AgentClient.status

    def status(client: AgentClient, request: StatusRequest | None = None) -> Status:
        answer = whole(client, request)
        answered.extend(each.counts for each in answer.broker_statuses)
        return answer

    monkeypatch.setattr(AgentClient, "status", status)
    watch = stage.watch(stage.serve(agent))
    for _ in range(3):
        watch.poll()
        assert stage.reported("segtail_topic_partitions") == {("__transaction_state",): 4, ("tr",): 1}
    assert [bool(counts) for counts in answered] == [True, False, False]
    assert {each.counts_name for each in agent.service.status().broker_statuses} != {""}


def test_what_an_agent_has_decided_is_asked_for_and_then_only_what_has_changed_of_it(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = stage.agent("a")
    reported: list[CatalogPart] = []
    whole = AgentClient.status

    def status(client: AgentClient, request: StatusRequest | None = None) -> Status:
        answer = whole(client, request)
        reported.extend(answer.catalog)
        return answer

    monkeypatch.setattr(AgentClient, "status", status)
    watch = stage.watch(stage.serve(agent))
    agent.service.register(Register("job", "earliest", False))
    agent.look()
    for _ in range(2):
        watch.poll()
    assert [part.whole for part in reported] == [True, False]


def test_an_agent_of_which_a_copy_of_this_job_asks_too_is_down_for_it_and_up_for_the_others(stage: Stage) -> None:
    stated = replace(stage.agent("a").service.status(), twins=["job"])
    shown = status_of(stated, "h:1", frozenset(), None, "job")
    assert (shown.up, shown.problems) == (False, ("twin_consumer",))
    shown = status_of(stated, "h:1", frozenset(), None, "other")
    assert (shown.up, shown.problems) == (True, ())


# --- renamed, and two of one name


def test_an_agent_that_was_renamed_is_not_missed_once_the_new_one_watches_its_log_dirs(stage: Stage) -> None:
    agent = stage.agent("old", disk="d")
    with agent.served() as address:
        watch = stage.watch(address)
        poll_until(watch, lambda: watch.up == {"old"})
    poll_until(watch, lambda: stage.up == {"old": 0})
    with stage.agent("new", disk="d").served(port=int(address.partition(":")[2])):
        poll_until(watch, lambda: stage.up == {"new": 1})
    assert stage.problems == set()


def test_two_agents_with_one_name_are_reported_with_the_option_that_mends_it(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    one, two = sorted([stage.serve(stage.agent("same")), stage.serve(stage.agent("same", broker=2, disk="two"))])
    watch = stage.watch(two, one)
    poll_until(watch, lambda: stage.up == {"same": 1, two: 0})
    (stated,) = [record.__dict__["error"] for record in caplog.records if record.message == "agent is down"]
    assert (one in stated, two in stated, "segtail agent --name NAME" in stated) == (True, True, True)
    assert stated in {agent.explanation for agent in stage.observer.agents}


def test_a_pod_that_was_scaled_away_is_missed_for_an_hour_without_an_address(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = stage.serve(stage.agent("a1")), stage.serve(stage.agent("a2", broker=2))
    listed, now = [one, two], [0.0]
    monkeypatch.setattr(SourceOptions, "addresses", lambda _: tuple(listed))
    options = parse_options({"agents": one})
    watch = AgentWatch(options, stage.observer, stage.table, lambda: now[0], names=[], cluster_id=CLUSTER_ID)
    poll_until(watch, lambda: watch.up == {"a1", "a2"})
    listed.remove(two)
    watch.poll()
    assert (stage.up, stage.problems) == ({"a1": 1, "a2": 0}, {("a2", "unresolved")})
    now[0] = GONE_SECONDS
    watch.poll()
    assert (stage.up, stage.problems) == ({"a1": 1}, set())
    listed.append(two)
    poll_until(watch, lambda: stage.up == {"a1": 1, "a2": 1})


def test_what_agents_have_read_and_cannot_read_is_reported_to_the_table(stage: Stage) -> None:
    agent = stage.agent("a1")
    watch = stage.watch(stage.serve(agent))
    watch.poll()
    assert stage.observer.reading() == {}  # it has not caught up, and nobody has reported what is in the metrics
    assert view(stage.table.snapshot(0.0)).observed.read_ms.tolist() == []
    agent.service.register(Register("job", "earliest", False))
    agent.look()
    watch.poll()
    assert stage.observer.reading() == {}
    stage.observer.processed("a1", agent.service.journal.id, agent.service.journal.end().total)
    watch.poll()
    assert stage.observer.reading() == {"a1": 0.0}


def test_the_groups_that_wait_for_a_hanging_transaction_are_asked_of_its_agent(stage: Stage, tmp_path: Path) -> None:
    log = partition(log_dir(tmp_path, "a1"), "__consumer_offsets", 3)
    record = offset_commit_record("billing", "orders", 0, 7, 0)
    log.append(Batch(records=(record,), producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    agent = stage.agent("a1")
    watch = stage.watch(stage.serve(agent))
    agent.service.register(Register("job", "earliest", False))
    agent.look()
    (place,) = (tail.cursor.log for tail in agent.service.watcher.tails())
    hangs, other = (HangingTransaction(place.broker, place.topic, number, place.topic_id, 7, 0) for number in (3, 4))
    stage.table.waiting.of([hangs, other])
    watch.poll()
    assert stage.table.waiting.of([hangs, other]) == {hangs: ("billing",)}
    assert stage.table.waiting.asked == (other,)
    assert not watch.quiet


def test_agents_are_quiet_once_they_are_well_and_have_read_their_disks(stage: Stage) -> None:
    agent = stage.agent("a1")
    watch = stage.watch(stage.serve(agent))
    assert not watch.quiet
    watch.poll()
    assert not watch.quiet
    agent.service.register(Register("job", "earliest", False))
    agent.look()
    watch.poll()
    assert watch.quiet


def answered(**values: object) -> Status:
    given = {"unreadable_metadata": [], "logs": 3, "caught_up": True, "seq": 1, "total": 2, "now_ms": 1_000_000}
    return Status(agent="a1", version="9", journal="j", cluster_id="c", brokers=[1, 2], **given | values)  # type: ignore[arg-type]


def test_clocks_may_differ_by_ten_seconds_either_way() -> None:
    found = {now: status_of(answered(), "h:1", frozenset(), now) for now in (989.5, 990.0, 1010.0, 1010.5)}
    assert [each.problems for each in found.values()] == [("clock",), (), (), ("clock",)]
    assert [each.clock_ahead_seconds for each in found.values()] == [10.5, 10.0, -10.0, -10.5]
    assert all(each.up for each in found.values())
    for unknown in (status_of(answered(now_ms=0), "h:1", frozenset(), 0.0), status_of(answered(), "h:1", frozenset(), None)):
        assert (unknown.clock_ahead_seconds, unknown.problems) == (None, ())


def test_an_agent_is_down_whose_watcher_is_silent_for_more_than_a_minute_or_that_serves_a_twin() -> None:
    states = [status_of(answered(silent_seconds=seconds), "h:1", frozenset(), None) for seconds in (STUCK_SECONDS, STUCK_SECONDS + 0.1)]
    assert [(each.up, each.problems) for each in states] == [(True, ()), (False, ("stuck",))]
    twin = answered(twins=["job"])
    assert [status_of(twin, "h:1", frozenset(), None, consumer).up for consumer in ("job", "other")] == [False, True]


def test_what_an_agent_has_not_read_yet_is_known() -> None:
    of = status_of(answered(caught_up=False, unreadable_metadata=[2]), "h:1", frozenset({"a1"}), None)
    assert (of.catching_up, of.metadata_brokers, of.problems, of.up) == (True, frozenset({1}), ("shared_log_dir",), True)
    done = status_of(answered(), "h:1", frozenset({"a2"}), None)
    assert (done.catching_up, done.metadata_brokers, done.problems) == (False, frozenset({1, 2}), ())
