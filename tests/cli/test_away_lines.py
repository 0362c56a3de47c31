"""What commands add about log dirs that nobody holds: as of when they are, and what a start would do."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from streaming.broker.protocol.listing_json import AwayBroker
from streaming.simulator.log import LogDir
from streaming.terminal.cli.lists import AT_START, away_lines
from tests.builders import batch, log_dir, partition
from tests.commands import run_command
from tests.docs.world import HOUR, LOG_DIRS, NOW, ShownBroker

AT = 1_700_003_600_000
NOBODY = "Broker 1 is stopped, or this is a copy: nobody holds the locks of the log dirs."


def line(*away: AwayBroker) -> str:
    (found,) = away_lines(away, AT, AT_START["retention"])
    return found


def test_both_times_are_named() -> None:
    assert line(AwayBroker(broker=1, last_ms=AT - 3_600_000)) == (
        f"{NOBODY} The files are as of the last write, 2023-11-14T22:13:20Z (1h ago). "
        "If it started at 2023-11-14T23:13:20Z, it would delete the bytes under Reclaimable"
    )
    assert "(" not in line(AwayBroker(broker=1, last_ms=AT + 1))
    assert "last write" not in line(AwayBroker(broker=1))


def test_several_are_named_together_and_nobody_is_not() -> None:
    ended = AwayBroker(broker=2, last_ms=AT - 5_000, ended_ms=AT - 1_000)
    assert line(ended).startswith("Broker 2 is not running. The files are as of the last write, ")
    assert line(AwayBroker(broker=1, last_ms=5), ended).startswith("Brokers 1, 2 are stopped, or this is a copy")
    assert list(away_lines((), AT, AT_START["disk"])) == []


def test_a_start_that_would_change_nothing_is_not_told() -> None:
    assert list(away_lines((AwayBroker(broker=1),), AT, "")) == [NOBODY]


@pytest.fixture
def disk(tmp_path: Path) -> LogDir:
    """As it is left by a broker that was killed an hour ago."""
    made = log_dir(tmp_path)
    orders = partition(made, "orders")
    orders.append(batch(3, timestamp=1_500_000_000_000))
    orders.roll()
    orders.append(batch(3))
    made.write_high_watermarks()
    made.release()
    hour_ago = time.time() - 3600
    for path in made.path.rglob("*"):
        os.utime(path, (hour_ago, hour_ago))
    return made


COMMANDS = ("retention", "transactions", "count", "disk")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_on_log_dirs_say_it_in_text_and_json(command: str, disk: LogDir) -> None:
    text = run_command(command, "--log-dirs", disk.path).stdout
    (found,) = (each for each in text.splitlines() if each.startswith("Broker 1 is"))
    assert found.startswith(NOBODY)
    assert found.endswith(f" {AT_START[command]}") is (command != "transactions")  # of which none is overdue
    page = json.loads(run_command(command, "--log-dirs", disk.path, "--json").stdout)
    assert [(each["broker"], each["ended_ms"]) for each in page["away"]] == [(1, None)]
    assert 3_500_000 < page["at_ms"] - page["away"][0]["last_ms"] < 3_700_000


@pytest.mark.parametrize("command", COMMANDS)
def test_of_a_broker_that_runs_they_say_nothing(command: str, tmp_path: Path) -> None:
    running = log_dir(tmp_path)
    partition(running, "orders").append(batch(3))
    assert "Broker 1 is" not in run_command(command, "--log-dirs", running.path).stdout
    assert json.loads(run_command(command, "--log-dirs", running.path, "--json").stdout)["away"] == []


@pytest.mark.parametrize("command", [("groups",), ("groups", "billing"), ("why", "billing")])
def test_groups_of_a_stopped_broker_say_it_too(command: tuple[str, ...], tmp_path: Path) -> None:
    world = ShownBroker(tmp_path)
    log_dirs = ",".join(str(tmp_path / each) for each in LOG_DIRS)
    assert "Broker 1 is" not in run_command(*command, "--log-dirs", log_dirs).stdout
    assert json.loads(run_command(*command, "--log-dirs", log_dirs, "--json").stdout)["away"] == []
    world.stop()
    last = run_command(*command, "--log-dirs", log_dirs).stdout.splitlines()[-1]
    assert last.startswith(NOBODY)
    assert last.endswith(AT_START["groups"])
    (away,) = json.loads(run_command(*command, "--log-dirs", log_dirs, "--json").stdout)["away"]
    assert (away["broker"], away["last_ms"]) == (1, NOW)


def test_what_a_stopped_broker_would_delete_has_no_time_but_waits_for_its_start(tmp_path: Path) -> None:
    world = ShownBroker(tmp_path)
    read = ("--log-dirs", ",".join(str(tmp_path / each) for each in LOG_DIRS), "--at", str(NOW + HOUR))

    def rows(command: str) -> dict[str, dict[str, Any]]:
        found = json.loads(run_command(command, *read, "--json").stdout)["rows"]
        return {each["group"] if command == "groups" else each["topic"]: each for each in found}

    running, reading = rows("retention"), rows("groups")
    assert (running["clicks"]["next_deletion_ms"] > 0, running["clicks"]["next_deletion_start_of"]) == (True, None)
    assert (reading["reports"]["loss_ms"] > 0, reading["reports"]["loss_start_of"]) == (True, None)
    world.stop()
    kept, groups = rows("retention"), rows("groups")
    assert (kept["clicks"]["next_deletion_ms"], kept["clicks"]["next_deletion_start_of"]) == (None, 1)
    assert (groups["reports"]["loss_ms"], groups["reports"]["loss_start_of"]) == (None, 1)
    assert kept["prices"]["next_deletion_start_of"] is None
    assert "after broker 1 starts" in run_command("retention", *read).stdout
    assert "after broker 1 starts" in run_command("groups", *read).stdout
    assert "after broker 1 starts" in run_command("disk", *read[:2]).stdout


def test_what_is_due_at_the_start_of_a_stopped_broker_is_named_with_its_group(tmp_path: Path) -> None:
    world = ShownBroker(tmp_path)
    world.stop()
    log_dirs = ",".join(str(tmp_path / each) for each in LOG_DIRS)
    why = [run_command("why", "reports", "--log-dirs", log_dirs, "--at", str(NOW + each * HOUR)).stdout for each in (0, 24)]
    assert ["by the first check after broker 1 is started" in each for each in why] == [False, True]
