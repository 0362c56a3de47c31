"""``segtail retention`` as people run it, on log dirs that brokers left, against what their own tools said of them."""

import json
import os
import shutil
from pathlib import Path

import pytest

from streaming.cluster.verdicts.commands import REMEDIES
from tests.builders import NOW, batch, log_dir, partition
from tests.commands import retention_rows, run_command, segtail_retention
from tests.frozen import FROZEN, LOG_DIRS, as_running, dirs, properties
from tests.frozen import case as case
from tests.tables import each_row

LIMITS = {
    "retention.ms": ("retention_limit_ms", 1),
    "retention.bytes": ("retention_limit_bytes", 1),
    "segment.ms": ("segment_limit_ms", 1),
    "segment.bytes": ("segment_limit_bytes", 1),
    "internal.segment.bytes": ("segment_limit_bytes", 1),
    "cleanup.policy": ("cleanup_policy", None),
    "min.insync.replicas": ("min_in_sync_replicas", 1),
}


def aged(case: Path) -> Path:
    """The same with old files. One that was written a moment ago has not missed two checks: in a fresh checkout nothing is overdue now."""
    for path in case.rglob("*"):
        os.utime(path, (1_795_000_000, 1_795_000_000))
    as_running(case.glob("n*/d*"))
    return case


def lines(path: Path) -> list[dict[str, str]]:
    names, *rows = [line.split("\t") for line in path.read_text().splitlines()]
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("case", FROZEN, indirect=True)
def test_offsets_sizes_and_leaders_are_those_that_the_brokers_reported(case: Path) -> None:
    rows = retention_rows("--log-dirs", dirs(case), "--server-properties", properties(case), "--at", "1970-01-01T00:00:01Z")
    expected = lines(case / "expected.tsv")
    assert len(rows) == len(expected) + 1  # no broker reports the metadata log
    for reported in expected:
        row = rows[reported["topic"], int(reported["partition"])]
        assert (row["broker"], row["leader"]) == (int(reported["leader"]), True)
        assert (row["log_start_offset"], row["high_watermark"]) == (int(reported["earliest"]), int(reported["high_watermark"]))
        assert (row["size_bytes"], row["segments"]) == (int(reported["size"]), int(reported["segments"]))
        newest = int(reported["max_timestamp"])
        assert row["max_timestamp_ahead_ms"] == (None if newest < 0 else newest - 1000)
        if "compact" in row["cleanup_policy"]:
            assert row["last_stable_offset"] == int(reported["last_stable_offset"])
        else:
            assert row["last_stable_offset"] is None, "nobody has looked for its open transactions"


@pytest.mark.parametrize("case", FROZEN, indirect=True)
def test_limits_are_those_that_the_brokers_reported(case: Path) -> None:
    rows = retention_rows("--log-dirs", dirs(case), "--server-properties", properties(case))
    by_topic = {topic: row for (topic, _), row in rows.items()}
    compared = 0
    for reported in lines(case / "configs.tsv"):
        if reported["name"] in LIMITS and reported["topic"] in by_topic:
            name, scale = LIMITS[reported["name"]]
            row = by_topic[reported["topic"]]
            limited = "delete" in row["cleanup_policy"] or not name.startswith("retention")
            value = reported["value"] if scale is None else int(reported["value"]) / scale
            assert row[name] == (None if value == -1 / (scale or 1) or not limited else value)
            compared += 1
    assert compared >= 5


@pytest.mark.parametrize(("case", "status"), [("overdue", 3), ("deletions", 0)], indirect=["case"])
def test_what_is_overdue_or_blocked_is_found_as_top_finds_it(case: Path, status: int, request: pytest.FixtureRequest) -> None:
    at = FROZEN[request.node.callspec.params["case"]]
    asked = ("--log-dirs", dirs(case), "--server-properties", properties(case), "--at", at, "--json")
    done, top = segtail_retention(*asked), run_command("top", "--view", "retention", *asked)
    kinds = [[row["kind"] for row in json.loads(each.stdout)["rows"]] for each in (done, top)]
    assert (done.returncode, "retention_overdue" in kinds[0]) == (status, status == 3)
    assert kinds[0] == kinds[1]


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_what_a_broker_should_have_deleted_is_overdue(case: Path) -> None:
    rows = retention_rows("--log-dirs", dirs(case), "--at", FROZEN["overdue"])
    for number in (0, 1):
        row = rows["lag-time-A", number]
        assert row["retention_reclaimable_bytes"] == row["size_bytes"]
        assert row["retention_limit_ms"] == 3_600_000
        lag, overdue = row["retention_lag_ms"], row["retention_overdue_ms"]
        assert lag == FROZEN["overdue"] - row["oldest_record_ms"] - 3_600_000
        assert 0 < overdue < lag
        assert row["next_deletion_ms"] == FROZEN["overdue"] - overdue + 1  # it stays at its limit, and goes a millisecond later
    by_size = rows["lag-size-A", 0]
    assert by_size["size_bytes"] - by_size["retention_reclaimable_bytes"] >= by_size["retention_limit_bytes"] == 30_000
    assert 0 < rows["lag-default-A", 0]["retention_reclaimable_bytes"] < rows["lag-default-A", 0]["size_bytes"]
    assert [rows[topic, 0]["retention_reclaimable_bytes"] for topic in ("lag-none-A", "lag-lat-A")] == [0, 0]


@pytest.mark.parametrize("case", ["node_down"], indirect=True)
def test_where_leaders_are_not_here_a_replica_speaks_and_says_so(case: Path) -> None:
    rows = retention_rows("--log-dirs", dirs(case, 3), "--topic", "rep")
    assert {(row["broker"], row["leader"]) for row in rows.values()} == {(3, False)}
    assert len(rows) == 3


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_a_log_dir_that_cannot_be_read_is_named_and_the_others_are_shown(case: Path, tmp_path: Path) -> None:
    done = segtail_retention("--log-dirs", f"{dirs(aged(case))},{tmp_path}/away", "--format", "json")
    assert (done.returncode, len(json.loads(done.stdout)["rows"])) == (3, len(retention_rows("--log-dirs", dirs(case))))
    assert done.stderr == f"segtail: log dir {tmp_path}/away does not exist: name a broker's log.dirs\n"
    table = segtail_retention("--log-dirs", f"{dirs(case)},{tmp_path}/away")
    assert table.stdout.splitlines()[-1].startswith(f"- log dir {tmp_path}/away does not exist")


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_offsets_that_nobody_knows_are_null(case: Path) -> None:
    """No file that is read tells how far the quorum has committed, and a checkpoint that is damaged tells nothing."""
    names = ("high_watermark", "last_stable_offset")
    rows = retention_rows("--log-dirs", dirs(case))
    for checkpoint in case.glob("n1/*/replication-offset-checkpoint"):
        checkpoint.write_text("what?")
    shutil.rmtree(case / "n1" / "d0" / "__cluster_metadata-0")
    environ = {"SEGTAIL_TOPIC_CONFIG": "{'.*': {cleanup.policy: compact}}"}
    done = segtail_retention("--log-dirs", dirs(case), "--format", "json", environ=environ)
    reported = json.loads(done.stdout)["rows"]
    uncleanable = ("uncleanable_open_transaction_bytes", "uncleanable_compaction_lag_bytes")
    assert len(reported) == len(rows) - 1
    assert {row[name] for row in reported for name in (*names, "dirty_bytes", "dirty_ratio", *uncleanable)} == {None}


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_without_server_properties_defaults_are_assumed_and_marked(case: Path) -> None:
    assert retention_rows("--log-dirs", dirs(case))["lag-default-A", 0]["limit_source"] == "assumed"
    assert retention_rows("--log-dirs", dirs(case), "--server-properties", properties(case))["lag-default-A", 0]["limit_source"] == "static"
    given = retention_rows("--log-dirs", dirs(case), environ={"SEGTAIL_BROKER_CONFIG": "{log.retention.hours: 3}"})
    assert (given["lag-default-A", 0]["limit_source"], given["lag-default-A", 0]["retention_limit_ms"]) == ("static", 3 * 3_600_000)
    assert given["lag-time-A", 0]["limit_source"] == "topic"
    table = segtail_retention("--log-dirs", dirs(case)).stdout
    assert "7d?" in table
    assert "\nassumed: " in table
    later = str(FROZEN["overdue"] + 30 * 86_400_000)
    done = segtail_retention("--log-dirs", dirs(aged(case)), "--at", later, "lag-default-A")
    assert "; 1 keep records past their limit, 0 overdue, 1 overdue by assumed limits, 0 blocked" in done.stdout
    assert done.returncode == 4  # whether something is overdue depends on what is not known
    known = ("--server-properties", properties(case))
    assert segtail_retention("--log-dirs", dirs(case), "--at", later, "lag-default-A", *known).returncode == 3


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_without_a_metadata_log_topics_are_what_people_say(case: Path) -> None:
    shutil.rmtree(case / "n1" / "d0" / "__cluster_metadata-0")
    environ = {"SEGTAIL_TOPIC_CONFIG": "{lag-time-.*: {retention.ms: 7200000}, 'lag.*': {retention.ms: 1000}}"}
    done = segtail_retention("--log-dirs", dirs(aged(case)), "--format", "json", environ=environ)
    assert done.returncode == 3
    assert "\nsegtail: the metadata log of broker 1 cannot be read here" in done.stderr
    limits = {row["topic"]: (row["retention_limit_ms"], row["limit_source"]) for row in json.loads(done.stdout)["rows"]}
    assert (limits["lag-time-A"], limits["lag-none-A"]) == ((7_200_000, "topic"), (1000, "topic"))


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
@pytest.mark.parametrize("damage", ["snapshot", "log"])
def test_metadata_that_is_damaged_is_named_and_the_rest_goes_on(case: Path, damage: str) -> None:
    metadata = case / "n1" / "d0" / "__cluster_metadata-0"
    if damage == "snapshot":
        (metadata / "00000000000000000005-0000000001.checkpoint").write_bytes(b"\0" * 100)
    else:
        segment = metadata / f"{0:020}.log"
        data = bytearray(segment.read_bytes())
        data[1000:1010] = b"\xff" * 10
        segment.write_bytes(data)
    done = segtail_retention("--log-dirs", dirs(case), "--format", "json")
    assert done.returncode == segtail_retention("--log-dirs", dirs(case)).returncode == 4
    assert "metadata log cannot be read" in done.stderr
    sizes = {(row["topic"], row["partition"]): row["size_bytes"] for row in json.loads(done.stdout)["rows"]}
    expected = {(reported["topic"], int(reported["partition"])): int(reported["size"]) for reported in lines(case / "expected.tsv")}
    assert expected.items() <= sizes.items()


def test_a_broker_of_before_kraft_has_no_metadata_log_to_read(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    partition(directory, "t").append(batch(5))
    asked = ("--log-dirs", directory.path, "--format", "json", "--at", NOW)
    assert segtail_retention(*asked).returncode == 4
    (directory.path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    done = segtail_retention(*asked, "--set", "topic_config={t: {retention.ms: 1000}}")
    assert (done.returncode, [row["topic"] for row in json.loads(done.stdout)["rows"]]) == (0, ["t"])


@pytest.mark.parametrize("case", ["deletions"], indirect=True)
def test_a_table_shows_partitions_and_totals(case: Path) -> None:
    arguments = ("--log-dirs", dirs(case), "--server-properties", properties(case), "--at", FROZEN["deletions"])
    done = segtail_retention(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    head, *rest = done.stdout.splitlines()
    assert head.split("  ")[0] == "Partition"
    assert head.endswith("Broker")
    assert len([line for line in rest if line.split(" ")[0][-2:-1] == "-"]) == 17
    assert any(line.startswith("17 partitions, ") for line in rest)


@pytest.mark.parametrize("case", ["deletions"], indirect=True)
@pytest.mark.parametrize(("by", "name"), [("size_bytes", "size_bytes"), ("retention_lag_ms", "retention_lag_ms")])
def test_rows_come_in_the_order_that_is_asked_for(case: Path, by: str, name: str) -> None:
    arguments = ("--log-dirs", dirs(case), "--sort", by, "--at", FROZEN["deletions"] + 20 * 86_400_000)
    values = [row[name] for row in retention_rows(*arguments).values()]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True)
    assert values[: len(known)] == known


def test_each_reason_comes_with_what_to_do(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    log = partition(directory, "orders")
    log.append(batch(1, timestamp=NOW + 86_400_000))
    log.roll()
    log.append(batch(1, timestamp=NOW - 30 * 86_400_000))
    log.roll()
    directory.write_high_watermarks()
    done = segtail_retention("--log-dirs", directory.path, "--at", NOW)
    assert "future_timestamp: orders-0: " in done.stdout


@each_row(
    ("arguments", "complaint"),
    [
        (("--log-dirs", "{dirs}", "--topic", "nope"), "no partition of nope lies in"),
        (("--log-dirs", "{dirs}/nowhere"), "does not exist"),
        (("--set", "listen=127.0.0.1:1"), "or --job http://HOST:PORT to ask a running job"),
        (("--log-dirs", "{dirs}", "--server-properties", "{dirs}/meta.properties.none"), "cannot be read"),
        (("--log-dirs", "{dirs}", "--server-properties", "{dirs}/recovery-point-offset-checkpoint"), "is no server.properties"),
        (("--log-dirs", "{dirs}", "--set", "broker_config={log.retention.hrs: 1}"), 'did you mean "log.retention.hours"?'),
        (("--log-dirs", "{dirs}", "--set", "broker_config={log.retention.hours: soon}"), 'log.retention.hours cannot be "soon"'),
        (("--log-dirs", "{dirs}", "--set", "topic_config={'(': {retention.ms: 1}}"), "topic_config takes a mapping of regular expressions"),
        (("--log-dirs", "{dirs}", "--at", "yesterday"), "is none of ISO 8601"),
    ],
)
def test_what_cannot_be_done_as_asked_is_stated(arguments: tuple[str, ...], complaint: str) -> None:
    given = [argument.replace("{dirs}", str(LOG_DIRS / "overdue" / "n1" / "d0")) for argument in arguments]
    done = segtail_retention(*given)
    assert done.returncode == 2
    assert complaint in done.stderr


def test_two_files_of_one_broker_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("node.id=1\n")
    done = segtail_retention("--log-dirs", LOG_DIRS / "overdue" / "n1" / "d0", "--server-properties", f"{tmp_path}/a,{tmp_path}/b")
    assert done.returncode == 2
    assert "are both of node 1" in done.stderr


def test_a_log_dir_that_holds_what_cannot_be_read_leaves_the_others(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    for topic in ("good", "bad"):
        partition(directory, topic).append(batch(1))
    segment = directory.path / "bad-0" / f"{0:020}.log"
    segment.unlink()
    segment.symlink_to(segment)  # cannot be opened by anybody, root included
    done = segtail_retention("--log-dirs", directory.path, "--format", "json", "--at", NOW)
    assert done.returncode == 4
    assert "log cannot be read" in done.stderr
    assert [row["topic"] for row in json.loads(done.stdout)["rows"]] == ["good"]
    assert f"- {directory.path}/bad-0: no segment of it can be read" in segtail_retention("--log-dirs", directory.path).stdout


def test_a_log_that_is_damaged_is_shown_up_to_the_damage_and_named(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    (directory.path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    log = partition(directory, "t")
    log.append(batch(5), batch(5))
    limits = ("--at", NOW, "--set", "topic_config={t: {retention.ms: 1000}}")
    assert segtail_retention("--log-dirs", directory.path, *limits).returncode == 0
    data = bytearray(log.active.path("log").read_bytes())
    data[log.segments[0].positions[1] + 16] = 77
    log.active.path("log").write_bytes(data)
    done = segtail_retention("--log-dirs", directory.path, *limits)
    assert done.returncode == 4
    assert done.stdout.splitlines()[-1].startswith(f"- {directory.path}/t-0 is not understood from offset 5 on: ")


def test_what_is_copied_to_another_log_dir_is_counted_once_and_nothing_of_it_is_deleted_meanwhile(tmp_path: Path) -> None:
    from_dir, to_dir = log_dir(tmp_path, "d0"), log_dir(tmp_path, "d1")
    topics = {topic: partition(from_dir, topic, topic_id=number) for number, topic in enumerate(("delete", "compact"), 1)}
    for log in topics.values():
        for _ in range(2):
            log.append(batch(5, timestamp=NOW - 30 * 86_400_000))
            log.roll()
    from_dir.write_high_watermarks()
    for topic in topics:
        partition(to_dir, topic, name=f"{topic}-0.{0:032x}-future").append(batch(5))
    dirs = f"{from_dir.path},{to_dir.path}"
    limits = ("--at", NOW, "--set", "topic_config={delete: {retention.ms: 1}, compact: {cleanup.policy: compact}}")
    done = segtail_retention("--log-dirs", dirs, *limits, "--format", "json")
    deleted, compacted = sorted(json.loads(done.stdout)["rows"], key=lambda row: row["topic"], reverse=True)
    assert (deleted["log_dir"], deleted["log_end_offset"]) == (str(from_dir.path), 10)
    assert (deleted["retention_blocked"], deleted["retention_reclaimable_bytes"], deleted["retention_overdue_ms"]) == ("moving", 0, 0)
    assert (deleted["next_deletion_ms"], deleted["kind"], done.returncode) == (None, "retention_blocked", 3)
    assert (compacted["dirty_bytes"], compacted["uncleanable_moving_bytes"]) == (0, compacted["size_bytes"])
    stated = segtail_retention("--log-dirs", dirs, *limits).stdout
    assert f"moving: delete-0, compact-0: {REMEDIES['moving'].why}" in stated
    disk = run_command("disk", tmp_path, *limits).stdout
    assert "2 replicas move to another log dir: until that is over, nothing of what moves is deleted or compacted" in disk
    assert json.loads(run_command("disk", tmp_path, *limits, "--json").stdout)["log_dirs"][0]["frees_now"] == 0


@pytest.mark.parametrize("case", ["overdue"], indirect=True)
def test_what_counts_as_overdue_goes_by_the_brokers_own_check_interval(case: Path) -> None:
    """The broker of this case looks once an hour: of the logs past their limit one has been for longer than two looks."""
    asked = ("--log-dirs", dirs(case), "--server-properties", properties(case), "--at", FROZEN["overdue"])
    stated = [line for line in segtail_retention(*asked).stdout.splitlines() if "more than two checks" in line]
    assert len(stated) == 1
    assert "lag-default-A-0" in stated[0]
    assert not [name for name in ("lag-time-A-0", "lag-time-A-1", "lag-size-A-0", "lag-lat-A-0") if name in stated[0]]


def test_a_copy_without_the_files_that_begin_with_a_dot_is_no_running_broker(tmp_path: Path) -> None:
    """``cp -r LOGDIR/* COPY``."""
    directory = log_dir(tmp_path)
    log = partition(directory, "orders")
    log.append(batch(1, timestamp=NOW - 30 * 86_400_000))
    log.roll()
    directory.write_high_watermarks()
    directory.release()
    (directory.path / ".lock").unlink()
    for path in directory.path.iterdir():
        if path.is_file():
            os.utime(path, (NOW / 1000, NOW / 1000))
    limits = ("--at", NOW, "--set", "topic_config={orders: {retention.ms: 1}}")
    (row,) = json.loads(segtail_retention("--log-dirs", directory.path, *limits, "--format", "json").stdout)["rows"]
    assert (row["next_deletion_ms"], row["next_deletion_start_of"], row["retention_overdue_ms"]) == (None, 1, 0)


def test_of_a_cluster_with_zookeeper_nobody_is_sent_for_a_metadata_log_and_every_command_ends_alike(tmp_path: Path) -> None:
    directory = log_dir(tmp_path)
    (directory.path / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    partition(directory, "t").append(batch(5))
    directory.write_high_watermarks()
    for command in ("retention", "count", "groups", "disk"):
        done = run_command(command, *([directory.path] if command == "disk" else ["--log-dirs", directory.path]))
        said = done.stdout + done.stderr
        assert (done.returncode, "the metadata of a cluster with ZooKeeper is in no log dir" in said) == (4, True), (command, said)
        assert "__cluster_metadata" not in said, command
    directory.release()
    assert "whether broker 1 runs is not known: its .lock is not held" in run_command("retention", directory.path).stdout
    for path in directory.path.rglob("*"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    assert "runs is not known" not in run_command("retention", directory.path).stdout
    done = run_command("restart-check", directory.path)
    assert (done.returncode, done.stdout) == (
        4,
        "No broker is known: that takes a metadata log (KRaft) that can be read, and none can be read here.\n",
    )
