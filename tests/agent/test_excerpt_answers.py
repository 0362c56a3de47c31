"""Parts of segments over the wire: listed, and scanned as each kind of rows."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from streaming.broker.agent import excerpt_answers
from streaming.broker.agent.excerpt_answers import PRINCIPALS_SCANS, SCANS, excerpt_messages, scan_messages
from streaming.broker.agent.slots import Slots
from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.agent_calls import Reason
from streaming.broker.protocol.consumer_messages import EVERYTHING_SELECTED
from streaming.broker.protocol.excerpt_messages import MOST_EXCERPTS, Excerpt, ExcerptsRequest, Scan, ScanRequest, UnreadPart
from streaming.broker.protocol.versions import OLDEST_JOB
from streaming.common.event_row import EVENTS
from streaming.common.log_key import LogKey
from streaming.common.rows import BATCHES, TRANSACTION_ROWS
from streaming.common.start_from import StartFrom
from streaming.errors import AgentError, VersionError
from streaming.simulator.log import PartitionLog
from streaming.spark.client.agent_client import AgentClient
from tests.agents import Agent
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.excerpts.drained import drained, list_excerpts

WHOLE = ExcerptsRequest(excerpt_bytes=1 << 30)


def nobody_knows(_key: LogKey, _epoch: int) -> int:
    return -1


@pytest.fixture
def log(tmp_path: Path) -> PartitionLog:
    made = partition(log_dir(tmp_path), "orders")
    made.append(batch(3), batch(2, timestamp=NOW + 50))
    made.append(batch(1, producer=7, transactional=True), commit(7), batch(1, producer=8, transactional=True))
    return made


@pytest.fixture
def client(agent: Agent) -> Iterator[AgentClient]:
    with agent.served() as address:
        made = AgentClient(address)
        yield made
        made.close()


def scanned(client: AgentClient, scan: Scan, excerpts: list[Excerpt], *, ongoing: bool = False) -> tuple[pa.Table, list[UnreadPart]]:
    tables, unread = drained(client.scan(ScanRequest(scan=scan, excerpts=excerpts, ongoing=ongoing)))
    return pa.concat_tables(tables), unread


def test_what_is_listed_is_scanned_as_each_kind_of_rows(client: AgentClient, log: PartitionLog) -> None:
    answer = client.excerpts(WHOLE)
    assert answer.matched == 1
    batches, unread = scanned(client, Scan.BATCHES, answer.excerpts)
    assert (batches.schema, unread) == (BATCHES, [])
    assert batches["size"].to_pylist() == [entry.size for entry in log.active.entries]
    ranges, unread = scanned(client, Scan.RANGES, answer.excerpts)
    assert (ranges.schema, unread) == (EVENTS, [])
    assert ranges["bytes"].to_pylist() == [log.active.size]
    rows, unread = scanned(client, Scan.TRANSACTIONS, answer.excerpts, ongoing=True)
    assert (rows.schema, unread) == (TRANSACTION_ROWS, [])
    named = ("producer_id", "committed", "first_offset", "marker_offset")
    assert [tuple(row[name] for name in named) for row in rows.to_pylist()] == [(7, 1, 5, 6), (8, -1, 7, -1)]
    assert scanned(client, Scan.TRANSACTIONS, answer.excerpts)[0].num_rows == 1


def test_every_segment_of_every_live_log_is_listed_in_messages_of_some(
    client: AgentClient, log: PartitionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(excerpt_answers, "MOST_EXCERPTS", 1)
    size = log.active.size
    log.roll()
    log.append(batch(1))
    found = [(one.broker, one.topic, one.partition, one.segment, one.bytes) for one in client.excerpts(WHOLE).excerpts]
    assert found == [(1, "orders", 0, 0, size), (1, "orders", 0, 8, log.active.size)]
    log.rename(f"{log.name}.{0:032x}-delete")
    assert client.excerpts(WHOLE).excerpts == []


def test_a_selection_that_nothing_fits_names_what_is_there(client: AgentClient) -> None:
    answer = client.excerpts(replace(WHOLE, topics=["ordres"]))
    assert (answer.matched, answer.excerpts, answer.topics) == (0, [], ["orders"])
    assert client.topics() == ["orders"]
    late = client.excerpts(replace(WHOLE, timestamp=NOW + 10**9))
    assert (late.matched, late.excerpts) == (1, [])


def test_what_is_gone_or_damaged_is_named_and_the_others_are_read(client: AgentClient, log: PartitionLog) -> None:
    log.roll()
    log.append(batch(1), batch(1))
    first, second = client.excerpts(WHOLE).excerpts
    with log.active.path("log").open("r+b") as file:
        file.seek(log.active.positions[1] + 16)
        file.write(b"\x09")
    gone = replace(first, segment=99, bytes=1234)
    for scan in Scan:
        _, unread = scanned(client, scan, [first, gone, second])
        (missing, damaged) = unread
        assert (missing.item, missing.bytes, missing.reason) == (1, 1234, "deleted")
        assert (damaged.item, damaged.bytes, damaged.next_offset) == (2, log.active.entries[1].size, 9)
        assert damaged.reason.startswith("corrupt: bad magic")


def test_an_open_transaction_begins_before_what_is_read(client: AgentClient, log: PartitionLog) -> None:
    log.roll()
    log.append(commit(8))
    _, second = client.excerpts(WHOLE).excerpts
    (row,) = scanned(client, Scan.TRANSACTIONS, [second])[0].to_pylist()
    assert (row["producer_id"], row["first_offset"], row["bytes"]) == (8, 7, log.segments[0].entries[-1].size)


def test_requests_have_bounds(tmp_path: Path) -> None:
    made = partition(log_dir(tmp_path), "orders")
    made.append(batch(1))
    dirs = open_log_dirs([tmp_path / "d0"])
    (excerpt,) = list_excerpts(dirs, EVERYTHING_SELECTED, StartFrom.EARLIEST, 1 << 30)

    def scan(request: ScanRequest) -> Iterator[bytes | pa.Buffer]:
        return scan_messages(dirs, request, "me", Slots(SCANS, PRINCIPALS_SCANS), nobody_knows)

    with pytest.raises(AgentError, match="1048576 bytes or more"):
        list(excerpt_messages(dirs, ExcerptsRequest(excerpt_bytes=1)))
    with pytest.raises(AgentError, match="'noon' is nothing"):
        list(excerpt_messages(dirs, ExcerptsRequest(excerpt_bytes=1 << 30, start="noon")))
    with pytest.raises(AgentError, match="4096 excerpts at most"):
        list(scan(ScanRequest(scan=Scan.BATCHES, excerpts=[excerpt] * (MOST_EXCERPTS + 1))))
    with pytest.raises(AgentError, match="'records' is nothing"):
        list(scan(ScanRequest(scan="records", excerpts=[excerpt])))
    with pytest.raises(VersionError):
        list(scan(ScanRequest(scan=Scan.BATCHES, excerpts=[], protocol=OLDEST_JOB - 1)))


def test_a_token_has_some_of_the_scans_and_all_tokens_have_a_few(tmp_path: Path) -> None:
    made = partition(log_dir(tmp_path), "orders")
    made.append(batch(1))
    dirs, room = open_log_dirs([tmp_path / "d0"]), Slots(SCANS, PRINCIPALS_SCANS)
    request = ScanRequest(scan=Scan.BATCHES, excerpts=list_excerpts(dirs, EVERYTHING_SELECTED, StartFrom.EARLIEST, 1 << 30))
    begun = [scan_messages(dirs, request, "me", room, nobody_knows) for _ in range(PRINCIPALS_SCANS)]
    for each in begun:
        next(each)
    with pytest.raises(AgentError, match="scans are running") as refused:
        next(scan_messages(dirs, request, "me", room, nobody_knows))
    assert refused.value.reason == Reason.BUSY
    others = [scan_messages(dirs, request, "other", room, nobody_knows) for _ in range(SCANS - PRINCIPALS_SCANS)]
    for each in others:
        next(each)
    with pytest.raises(AgentError, match="scans are running"):
        next(scan_messages(dirs, request, "third", room, nobody_knows))
    begun[0].close()
    list(others[0])
    assert len(list(scan_messages(dirs, request, "me", room, nobody_knows))) == 2


def test_a_log_dir_that_cannot_be_used_is_named(client: AgentClient, agent: Agent, log: PartitionLog) -> None:
    path = log.directory.parent
    agent.log_dirs.bar(path, "does not answer")
    answer = client.excerpts(WHOLE)
    assert (answer.excerpts, [each.log_dir for each in answer.unavailable]) == ([], [str(path)])
