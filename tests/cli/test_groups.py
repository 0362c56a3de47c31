"""``segtail groups`` and ``segtail why`` as people run them: exit status, output, complaints; from log dirs and from a job."""

import json
import re
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from streaming.broker.protocol.group_json import OLD_DATA_MS, GroupDetail, GroupDetailPage, GroupFinding, GroupPage, GroupSummary
from streaming.broker.protocol.listing_json import AwayBroker
from streaming.common.short_names import short_name
from streaming.simulator.batch_writer import Batch, Record
from streaming.simulator.coordinators import SimulatedMember, classic_group_record, offset_commit_record
from tests.builders import NOW, batch, commit, log_dir, partition
from tests.cli.served_groups import GROUPS, detail, job
from tests.commands import run_command

HOUR = 3_600_000
LONG = "g" * 10_240
CONTROL = "a\x1b[2Jb"


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """A broker with groups that are held up, finished, beyond the end, and with odd names."""
    made = log_dir(tmp_path)
    coordinator = partition(made, "__consumer_offsets", topic_id=7)
    orders, done = partition(made, "orders", topic_id=8), partition(made, "done", topic_id=9)
    for log in (orders, done):
        log.append(batch(4, timestamp=NOW - HOUR, producer=3, transactional=True), commit(3))
    orders.append(batch(3, timestamp=NOW - HOUR, producer=9, transactional=True))
    for group, topic, offset in (
        ("held", "orders", 5),
        ("markers", "done", 4),
        ("beyond", "orders", 99),
        (CONTROL, "orders", 5),
        (LONG, "orders", 0),
    ):
        coordinator.append(Batch(records=(offset_commit_record(group, topic, 0, offset, NOW - 60_000),)))
    made.write_high_watermarks()
    return made.path


def on_disk(disk: Path, command: str, *arguments: str) -> CompletedProcess[str]:
    return run_command(command, *arguments, "--log-dirs", str(disk), "--at", str(NOW))


def test_the_table_has_a_line_for_each_group_the_worst_first(disk: Path) -> None:
    done = on_disk(disk, "groups")
    heads, *lines = done.stdout.partition("\n\n")[0].splitlines()
    assert done.returncode == 3
    assert heads.split()[:2] == ["Group", "Verdict"]
    assert [tuple(re.split("  +", line)[:2]) for line in lines] == [
        ('"a\\u001b[2Jb"', "held"),
        ("held", "held"),
        ("beyond", "beyond end"),
        (short_name(LONG), "fine?"),
        ("markers", "only markers"),
    ]
    assert "\x1b" not in done.stdout


def test_where_there_are_no_groups_that_is_stated_and_what_was_read(tmp_path: Path) -> None:
    without = log_dir(tmp_path, "without")
    partition(without, "orders", topic_id=8).append(batch(1))
    without.write_high_watermarks()
    done = on_disk(without.path, "groups")
    assert done.stdout == "no consumer groups are known: no log of a coordinator (__consumer_offsets) was read here\n"
    assert (done.returncode, done.stderr.count("shows how many partitions __consumer_offsets has")) == (4, 1)  # without a metadata log
    empty = log_dir(tmp_path, "empty")
    partition(empty, "__consumer_offsets", topic_id=7).append(batch(1))
    empty.write_high_watermarks()
    assert on_disk(empty.path, "groups").stdout == "no consumer groups: 1 log of coordinators was read\n"
    assert json.loads(on_disk(empty.path, "groups", "--json").stdout)["rows"] == []
    for directory in (without.path, empty.path):  # nothing is wrong with none, and nothing is well
        assert on_disk(directory, "why").stdout == on_disk(directory, "groups").stdout
    with job([]) as url:
        assert run_command("groups", "--job", url).stdout == "no consumer groups are known\n"
        assert run_command("why", "--job", url).stdout == "no consumer groups are known\n"


def test_a_group_can_be_named_by_an_option_and_a_text_leaves_the_groups_that_hold_it(disk: Path) -> None:
    for command in ("groups", "why"):
        for extra in ((), ("--json",)):
            named = on_disk(disk, command, "held", "markers", *extra).stdout
            assert on_disk(disk, command, "held", "--group", "markers", "--group", "held", *extra).stdout == named
        only = on_disk(disk, command, "markers", "--group", "held", "--filter", "HEL")
        assert only.stdout == on_disk(disk, command, "held").stdout
        none = on_disk(disk, command, "held", "--filter", "mark")
        assert (none.returncode, none.stdout.strip()) == (4, "")  # without the metadata log not all is known
    some = on_disk(disk, "groups", "--filter", "D", "--json")
    assert {row["group"] for row in json.loads(some.stdout)["rows"]} == {"held", "beyond", short_name(LONG)}
    for command in ("groups", "why"):
        nothing = on_disk(disk, command, "--filter", "nothing")
        assert (nothing.stdout, nothing.stderr.splitlines()[-1]) == ("", "segtail: no group of 5 is one that was asked for")
    why = on_disk(disk, "why", "--filter", "he")
    assert why.stdout == on_disk(disk, "why", "held").stdout


def test_groups_are_chosen_by_who_uses_them(disk: Path) -> None:
    every = json.loads(on_disk(disk, "groups", "--json").stdout)["rows"]
    uses = {row["use"] for row in every}
    for use in ("unknown", "throw_away", ",".join(sorted(uses))):
        chosen = json.loads(on_disk(disk, "groups", "--use", use, "--json").stdout)["rows"]
        assert [row["group"] for row in chosen] == [row["group"] for row in every if row["use"] in use.split(",")]
    refused = on_disk(disk, "groups", "--use", "unknown,used")
    assert refused.returncode == 2
    assert '"used" is not one of in_use, unattended, abandoned, throw_away, unknown' in refused.stderr


def test_a_group_that_was_deleted_is_no_typing_mistake(disk: Path, tmp_path: Path) -> None:
    """Its offsets have expired, or somebody has deleted it: its coordinator's log still shows when, and what it had committed."""
    made = log_dir(tmp_path, "ended")
    coordinator = partition(made, "__consumer_offsets", topic_id=7)
    member = SimulatedMember("m", "app", (0,))
    commits = [offset_commit_record("gone", "orders", each, 30 + each, NOW - 2 * HOUR) for each in range(2)]
    groups = [
        classic_group_record("gone", generation, "orders", members, NOW - hours * HOUR)
        for generation, members, hours in ((1, (member,), 3), (2, (), 1))
    ]
    deleted = [Record(each.key, None, NOW - HOUR // 2) for each in (*commits, groups[0])]
    there = offset_commit_record("there", "orders", 0, 1, NOW)
    for each in (groups[0], *commits, groups[1], *deleted, there):
        coordinator.append(Batch(records=(each,)))
    made.write_high_watermarks()
    end = (
        "its coordinator deleted it at 2023-11-14T21:43:20Z (30m ago), by hand or because its offsets expired; it had committed "
        "orders-0: 30, orders-1: 31; its last member left at 2023-11-14T21:13:20Z (1h ago); where a consumer begins that comes now, "
        "auto.offset.reset decides"
    )
    for command in ("why", "groups"):
        both = on_disk(made.path, command, "there", "gone")
        assert f"segtail: no group gone is known here: {end}" in both.stderr.splitlines()
        assert "gone" not in both.stdout
    history = on_disk(made.path, "groups", "gone", "--history").stdout.splitlines()
    assert [line.partition("  ")[0] for line in history[-3:]] == ["2023-11-14T21:43:20.000Z"] * 3
    assert on_disk(disk, "why", "nobody").stderr.count("no group nobody is known here\n") == 1


def test_a_group_whose_offsets_were_deleted_with_their_topic_is_told_so(tmp_path: Path) -> None:
    """It is still there, without members and without offsets, and begins again by auto.offset.reset."""
    made = log_dir(tmp_path)
    coordinator = partition(made, "__consumer_offsets", topic_id=7)
    committed = offset_commit_record("left", "orders", 0, 50, NOW - HOUR)
    empty = classic_group_record("left", 2, "orders", (), NOW - HOUR)
    for each in (committed, empty, Record(committed.key, None, NOW - HOUR // 2), offset_commit_record("there", "orders", 0, 1, NOW)):
        coordinator.append(Batch(records=(each,)))
    made.write_high_watermarks()
    said = on_disk(made.path, "why", "left").stdout
    assert "none any more: its coordinator deleted them at 2023-11-14T21:43:20Z (30m ago), with their topic, by hand or because" in said
    assert "it had committed orders-0: 50" in said
    assert "deleted them" not in on_disk(made.path, "why", "there").stdout


def test_a_text_means_the_same_to_a_job() -> None:
    with job(GROUPS) as url:
        table = run_command("groups", "--filter", "A", "--job", url)
        named = run_command("groups", "late", "fine", "--filter", "LAT", "--json", "--job", url)
        why = run_command("why", "--filter", " b", "--job", url)
        gone = run_command("why", "nobody", "--filter", "late", "--job", url)
        nothing = [run_command(*some, "--filter", "zzz", "--job", url) for some in (("groups",), ("groups", "late"), ("why",))]
        listed = run_command("groups", "--filter", "zzz", "--json", "--job", url)
    assert [re.split("  +", line)[1] for line in table.stdout.splitlines()[1:]] == ["will lose", "held"]
    assert GroupDetailPage.decode(named.stdout.encode()).rows == [GROUPS[0]]
    assert why.stdout.splitlines()[0].startswith('"a b": ')
    assert (gone.returncode, gone.stderr) == (2, "segtail: error: there is no group nobody\n")
    line = f"segtail: no group of {len(GROUPS)} is one that was asked for\n"
    assert [(each.returncode, each.stdout, each.stderr) for each in nothing] == [(0, "", line)] * 3
    assert (listed.returncode, GroupPage.decode(listed.stdout.encode()).rows, listed.stderr) == (0, [], line)


def test_with_names_the_table_has_a_line_for_each_partition(disk: Path) -> None:
    done = on_disk(disk, "groups", "markers", "held")
    assert done.returncode == 3
    held, markers = (table.splitlines() for table in done.stdout.split("\n\n")[:2])
    assert (held[0].split(":")[0], markers[0].split(":")[0]) == ("held", "markers")
    assert [re.split("  +", line)[:3] for line in (markers[2], held[2])] == [["done-0", "only markers", "0"], ["orders-0", "held", "0"]]
    assert [line.split()[-5:-2] for line in (markers[2], held[2])] == [["1", "4", "5"], ["3", "5", "8"]]  # offsets, committed, end


def test_a_loss_by_limits_that_are_assumed_has_a_question_mark_and_a_line(disk: Path) -> None:
    names = ("held", "markers")
    assumed = "assumed: orders-0: the broker's server.properties or the topics' settings are not known here"
    for command in ("groups", "why"):
        lines = on_disk(disk, command, *names).stdout.splitlines()
        assert lines[-2] == ""
        assert lines[-1].startswith(assumed)
        assert "assumed" not in on_disk(disk, command, "markers").stdout  # nothing is unread, so nothing will be lost
    held, markers = json.loads(on_disk(disk, "groups", *names, "--json").stdout)["rows"]
    assert [each["summary"]["limits_assumed"] for each in (held, markers)] == [True, False]
    assert [each["partitions"][0]["limits_assumed"] for each in (held, markers)] == [True, False]


@pytest.mark.parametrize(
    ("group", "status", "text"),
    [
        ("held", 3, "- orders-0: held up by a transaction of producer 9"),
        ("beyond", 3, "- orders-0: the committed offset 99 is beyond the end of the log, 8"),
    ],
)
def test_why_says_what_holds_a_group_up(disk: Path, group: str, status: int, text: str) -> None:
    done = on_disk(disk, "why", group)
    head, *lines = done.stdout.splitlines()
    assert (done.returncode, head.partition(":")[0]) == (status, group)
    assert lines[0].startswith(text)


def test_a_command_is_given_to_copy_or_the_reason_why_there_is_none(disk: Path) -> None:
    beyond = json.loads(on_disk(disk, "why", "beyond", "--json").stdout)["rows"][0]["findings"][0]
    assert beyond["command"].endswith("--group beyond --topic orders:0 --reset-offsets --to-earliest --execute")
    held = on_disk(disk, "why", CONTROL, "--format", "json")
    assert json.loads(held.stdout)["rows"][0]["summary"]["group"] == CONTROL
    assert "\x1b" not in on_disk(disk, "why", CONTROL).stdout
    assert "no command: the transaction" not in on_disk(disk, "why", "held").stdout


def test_a_name_that_is_pasted_from_the_table_is_refused_with_a_hint(disk: Path) -> None:
    hint = "names are given as they are, whole, without the quotes and escapes of the table"
    for pasted in ('"a\\u001b[2Jb"', "g" * 100 + "...(10,240 characters)"):
        assert hint in on_disk(disk, "why", pasted).stderr
    assert hint not in on_disk(disk, "why", "nobody").stderr


@pytest.mark.parametrize("command", ["groups", "why"])
def test_what_cannot_be_read_is_stated_once(disk: Path, command: str) -> None:
    for topic in ("orders", "done"):  # the group reads the first alone
        (disk / f"{topic}-0" / "partition.metadata").write_text("?")
    done = on_disk(disk, command, "held")
    assert done.stderr.count("the metadata log cannot be read") == 1
    assert len([line for line in done.stderr.splitlines() if "partition.metadata" in line]) == 1


def test_a_group_that_is_not_there_is_no_answer(disk: Path) -> None:
    done = on_disk(disk, "why", "nobody")
    assert (done.returncode, done.stdout) == (4, "")  # without the metadata log nobody knows how many coordinators there are
    assert "segtail: no group nobody is known here" in done.stderr
    assert run_command("why", "nobody").returncode == 2
    assert run_command("why").returncode == 2


def test_a_job_is_asked_for_all_pages_and_for_the_groups_that_are_named() -> None:
    with job(GROUPS) as url:
        done = run_command("groups", "--job", url)
        named = run_command("why", "late", "a b", "nobody", "--job", url)
    assert (done.returncode, done.stderr) == (3, "")
    assert [re.split("  +", line)[1] for line in done.stdout.splitlines()[1:]] == ["will lose", "held", "fine"]
    assert named.returncode == 3
    assert named.stderr == "segtail: no group nobody is known here\n"
    assert "- orders-0: its oldest unread records will be deleted." in named.stdout


def test_what_a_job_does_not_know_is_reported() -> None:
    with job(GROUPS[2:], omitted=3) as url:
        done = run_command("groups", "--job", url)
    assert (done.returncode, done.stderr) == (4, "segtail: 3 groups are left out, because groups_limit is lower\n")


@pytest.mark.parametrize(("data_age_ms", "status"), [(OLD_DATA_MS, 0), (OLD_DATA_MS + 13_000, 4)])
def test_that_a_job_s_data_is_old_is_a_doubt(data_age_ms: int, status: int) -> None:
    with job([replace(GROUPS[2], data_age_ms=data_age_ms)]) as url:
        done, named = run_command("groups", "--job", url), run_command("why", GROUPS[2].summary.group, "--job", url)
    doubt = "segtail: what the job knows is up to 43s old: it is behind its agents, or one of them stands still or is away\n"
    assert [(each.returncode, each.stderr) for each in (done, named)] == 2 * [(status, doubt if status else "")]


@pytest.mark.parametrize("command", [("groups",), ("groups", "late"), ("why", "late"), ("why", "--filter", "lat")])
def test_a_job_names_a_broker_that_is_away_too(command: tuple[str, ...]) -> None:
    ended = AwayBroker(broker=1, last_ms=NOW - 5_000, ended_ms=NOW - 4_000)
    with job(GROUPS, away=[ended]) as url:
        text, answer = run_command(*command, "--job", url), run_command(*command, "--json", "--job", url)
    assert text.stdout.splitlines()[-1].startswith("Broker 1 is not running. The files are as of the last write, ")
    assert [each["broker"] for each in json.loads(answer.stdout)["away"]] == [1]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "file:///etc/passwd", "127.0.0.1:9"])
def test_a_job_that_cannot_be_asked_is_no_answer(url: str) -> None:
    done = run_command("groups", "--job", url)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("segtail: error: ")


def test_a_job_that_knows_nothing_yet_says_so() -> None:
    with job(GROUPS, unavailable="nothing is known of consumer groups yet\n") as url:
        done = run_command("groups", "--job", url)
    assert done.returncode == 2
    assert done.stderr.endswith(": 503 Service Unavailable: nothing is known of consumer groups yet\n")


def test_as_json_a_command_prints_what_the_job_answers() -> None:
    with job(GROUPS) as url:
        every = run_command("groups", "--json", "--job", url)
        named = run_command("groups", "late", "fine", "--json", "--job", url)
    assert [each.group for each in GroupPage.decode(every.stdout.encode()).rows] == ["late", "a b", "fine"]
    assert GroupDetailPage.decode(named.stdout.encode()).rows == [GROUPS[2], GROUPS[0]]


def test_what_is_about_a_whole_group_stands_below_its_partitions() -> None:
    left = detail("left", "no_members", "info", "it has no member, and something is left to read", topic="")
    with job([left]) as url:
        out = run_command("groups", "left", "--job", url).stdout.splitlines()
    assert out[2].startswith("orders-0 ")
    assert out[3:] == ["the group: it has no member, and something is left to read"]


def test_a_named_group_without_partitions_is_stated_to_have_none() -> None:
    idle = GroupFinding(verdict="fine", text="it has no committed offsets, or none any more")
    with job([GroupDetail(at_ms=NOW, summary=GroupSummary(group="idle", verdict="fine"), partitions=[], findings=[idle])]) as url:
        done = run_command("groups", "idle", "--job", url)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1:] == ["the group: it has no committed offsets, or none any more"]


@pytest.mark.parametrize("arguments", [("groups",), ("groups", "x"), ("why", "x")])
def test_a_server_that_is_no_job_is_distinguished_from_a_job_without_the_group(arguments: tuple[str, ...]) -> None:
    with job(GROUPS, path="/elsewhere") as url:
        other = run_command(*arguments, "--job", url)
    with job(GROUPS) as url:
        here = run_command("why", "x", "--job", url)
    assert other.returncode == 2
    assert "has no /api/v1/groups: its version may be an earlier one, or it is no job" in other.stderr
    assert (here.returncode, here.stderr) == (2, "segtail: error: there is no group x\n")


@pytest.mark.parametrize(
    ("option", "value"), [("--log-dirs", "/data"), ("--group-stopped-after", "1m"), ("--server-properties", "/server.properties")]
)
def test_options_of_log_dirs_are_refused_with_a_job(option: str, value: str) -> None:
    done = run_command("groups", "--job", "http://127.0.0.1:1", option, value)
    assert done.returncode == 2
    assert done.stderr == f"segtail: error: {option} cannot be given with --job: the job answers by its own settings\n"


def test_a_password_in_the_address_is_not_printed() -> None:
    done = run_command("groups", "--job", "http://me:secret@127.0.0.1:1")
    assert done.returncode == 2
    assert "secret" not in done.stderr
