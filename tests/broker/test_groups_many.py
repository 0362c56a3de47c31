"""Thousands of groups that commit at once, on a live broker that compacts the logs of their coordinators all the time."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource  # type: ignore[attr-defined]

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.segment_files import FileIdentity, list_segments
from streaming.broker.protocol.group_json import GROUPS_PATH, GroupDetail, GroupPage, GroupSummary, path_of
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import read_groups
from tests.broker.clients import create_topic, producer, send
from tests.broker.group_comparing import by_key, fetched
from tests.broker.kafka import Kafka
from tests.broker.many_groups import PARTITIONS, TOPIC, ManyGroups, first_offset
from tests.broker.observed import now_ms
from tests.commands import run_command
from tests.job_without_spark import WITHOUT_SPARK
from tests.limits import SECONDS
from tests.processes import segtail, until

COUNT = 3_000
RECORDS = 1_000
"""In each partition: no group comes to the end."""

_LOOKS = 3
_CLEANED = 20
_ROUNDS_OF_JOB = 2
_PAGE = 1_000
_DETAILS = 50
_COMPACTED = {"internal.segment.bytes": "60000", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "0"}
_SETTINGS = {"log.initial.task.delay.ms": 500, "log.cleaner.backoff.ms": 100}


@pytest.fixture(scope="module")
def compacting(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker that cleans its coordinators' logs many times a minute, and forgets deletions at once."""
    kafka = Kafka(tmp_path_factory.mktemp("many"), settings=_SETTINGS)
    try:
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC, PARTITIONS)
        for partition in range(PARTITIONS):
            send(producer(kafka.bootstrap), TOPIC, partition, 1, RECORDS)
        yield kafka
    finally:
        kafka.kill()


@pytest.fixture(scope="module")
def groups(compacting: Kafka) -> ManyGroups:
    """All have committed once."""
    many = ManyGroups(compacting.bootstrap, COUNT)
    many.commit()
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in _COMPACTED.items()]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "__consumer_offsets", incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": compacting.bootstrap})
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(SECONDS)
    return many


def files(kafka: Kafka) -> set[FileIdentity]:
    """Those of all coordinators' logs."""
    logs = (path for log_dir in kafka.log_dirs for path in log_dir.glob("__consumer_offsets-*"))
    return {segment.identity for path in logs for segment in list_segments(path)}


def assert_read(kafka: Kafka, groups: ManyGroups) -> None:
    """Log dirs show all commits of all groups once, none older than when their reading began, and no group that was deleted before."""
    least, gone = groups.done, {*groups.gone}
    settings = Settings(server_properties=(kafka.broker(1).properties,))
    reading = read_groups(open_log_dirs(kafka.log_dirs), (), settings, now_ms())
    most, snapshot = groups.begun, reading.answers.judged.snapshot
    rows = snapshot.rows
    assert reading.doubts == ()
    names = {rows.group_names[number] for number in rows.group.tolist()}
    assert names.isdisjoint(gone), "what was deleted has not come back"
    assert names >= {*groups.names}
    for name in groups.names:
        own = snapshot.rows_of(name)
        offsets = dict(zip(rows.partition[own].tolist(), rows.offset[own].tolist(), strict=True))
        rounds = {offsets[partition] - first_offset(name, partition) for partition in range(PARTITIONS)}
        assert len(own) == PARTITIONS, name
        assert least <= min(rounds) <= max(rounds) <= most, (name, least, most, offsets)
        assert (snapshot.found.lags.reason[own] < 0).all(), name


def assert_listed(kafka: Kafka, groups: ManyGroups) -> None:
    """`segtail groups --json` says of all of them what is left after the last round."""
    options = ("--log-dirs", ",".join(map(str, kafka.log_dirs)), "--server-properties", kafka.broker(1).properties)
    done = run_command("groups", *options, "--json")
    listed = sorted((row.group, row.partitions, row.unknown, row.lag) for row in GroupPage.decode(done.stdout.encode()).rows)
    right = groups.right()
    left = {name: sum(RECORDS - right[name, TOPIC, each] for each in range(PARTITIONS)) for name in groups.names}
    assert listed == sorted((name, PARTITIONS, 0, left[name]) for name in groups.names)


def test_every_commit_is_there_once_and_no_deleted_one_while_all_logs_are_compacted(compacting: Kafka, groups: ManyGroups) -> None:
    seen, looks = files(compacting), 0
    with groups.running():
        while looks < _LOOKS or len(seen) < _CLEANED or groups.done < _LOOKS:
            assert not groups.failed, groups.failed
            assert_read(compacting, groups)
            seen |= files(compacting)
            looks += 1
    assert groups.answered() == groups.right()
    assert_read(compacting, groups)
    assert_listed(compacting, groups)


class Watched:
    """What a job has said so far of all groups, each time held against what they have done, and against what it has said before."""

    def __init__(self, url: str, groups: ManyGroups) -> None:
        self._base, self._groups = url.removesuffix("/metrics") + GROUPS_PATH, groups
        self.rounds = dict.fromkeys(groups.names, 0)
        self.complete = False

    def look(self) -> bool:
        """Ask about all groups; returns whether it has said of each of them that it has done the last round."""
        assert not self._groups.failed, self._groups.failed
        begun = self._groups.begun
        pages = [page for offset in range(0, COUNT, _PAGE) if (page := self._page("group-", offset))]
        rows = [row for page in pages for row in page.rows]
        names = [row.group for row in rows]
        for page in pages:
            assert len(page.rows) == len({row.group for row in page.rows}), "none comes twice"
        was_complete = self.complete
        if len(pages) == COUNT // _PAGE and not any(page.unread or page.doubts for page in pages):
            self.complete = True
        if was_complete:  # else the list may have grown from page to page
            assert sorted(names) == sorted(self.rounds), "who has read all coordinators misses nobody"
        for row in rows:
            self._hold(row)
        return begun == self._groups.done and {*self.rounds.values()} == {begun}

    def gone(self) -> bool:
        """Whether none of the groups that were deleted is left."""
        page = self._page("gone-", 0)
        return page is not None and page.rows == []

    def _page(self, text: str, offset: int) -> GroupPage | None:
        answer = fetched(f"{self._base}?limit={_PAGE}&filter={text}&sort=group&offset={offset}")
        return GroupPage.decode(answer) if answer else None

    def _hold(self, row: GroupSummary) -> None:
        if row.unknown:
            return
        passed = PARTITIONS * RECORDS - row.lag - sum(first_offset(row.group, each) for each in range(PARTITIONS))
        number, rest = divmod(passed, PARTITIONS)
        assert (row.partitions, rest) == (PARTITIONS, 0), f"a round is one batch: {row}"
        assert self.rounds[row.group] <= number <= self._groups.begun, (self.rounds[row.group], row)
        self.rounds[row.group] = number


def test_a_job_has_all_of_them_and_goes_with_them(compacting: Kafka, groups: ManyGroups, tmp_path: Path) -> None:
    """What it does not know yet it says so of: groups, by partitions that are not known, and whole coordinators, by `unread`."""
    dirs, properties = ",".join(map(str, compacting.log_dirs)), compacting.broker(1).properties
    where = ("--log-dirs", dirs, "--server-properties", properties, "--checkpoint", tmp_path / "c", "--listen", "127.0.0.1:0")
    options = ("--from", "latest", "--trigger", "1s", "--set", "state_shards=4")
    with segtail("run", *where, *options, stated=tmp_path / "job.log", before=WITHOUT_SPARK) as job:
        watched = Watched(until("the job listens", lambda: job.url), groups)
        with groups.running():
            until("it has read all coordinators", lambda: watched.look() or watched.complete)
            last = groups.done + _ROUNDS_OF_JOB
            until("it goes with all groups", lambda: watched.look() or min(watched.rounds.values()) >= last, saw=lambda: groups.done)
        until("it says the last round of all groups", watched.look)
        until("none that was deleted is there", watched.gone)
        assert_listed(compacting, groups)
        some = groups.names[:: COUNT // _DETAILS]
        details = by_key(GroupDetail.decode(fetched((job.url or "").removesuffix("/metrics") + path_of(name))) for name in some)
        assert {key: each["committed"] for key, each in details.items()} == {
            key: offset for key, offset in groups.right().items() if key[0] in {*some}
        }
