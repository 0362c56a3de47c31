"""``segtail topics`` as people run it: what it finds, what is not known, and its exit status; from log dirs and from a job."""

import json
from pathlib import Path
from shutil import rmtree

import pytest

from streaming.pages.site.exporter import Exporter
from tests.builders import NOW, batch, partition
from tests.commands import run_command
from tests.file_times import written_at
from tests.view.rows import log, new_observer, new_table
from tests.worlds.retention import facts
from tests.worlds.topics import DAY, LONG_AGO, World, topic_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Besides `orders`, which nobody has used for 40 days, two topics that somebody uses or has several partitions of."""
    made = World(tmp_path)
    made.metadata.write(topic_of("pay.in", 9, 1) + topic_of("pay.out", 10, 4), NOW)
    for name, number, at in (("pay.in", 9, NOW - DAY), *((("pay.out", 10, LONG_AGO),) * 4)):
        logs = [each for each in made.disk.partitions if each.topic == name]
        written = partition(made.disk, name, len(logs), topic_id=number)
        written.append(batch(1, timestamp=at))
        written_at(written, at)
    made.disk.write_high_watermarks()
    made.disk.write_log_starts()
    return made


def topics(world: World, *arguments: str) -> tuple[int, str]:
    done = run_command("topics", "--log-dirs", world.disk.path, "--at", str(NOW), *arguments)
    return done.returncode, done.stdout


def rows(out: str) -> dict[str, dict[str, object]]:
    return {row["topic"]: row for row in json.loads(out)["rows"]}


def test_it_finds_what_nobody_uses_with_what_that_costs(world: World) -> None:
    status, out = topics(world, "--unused", "30d")
    assert status == 3
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["pay.out", "orders"]
    assert "2 topics unused for 30d, 5 partitions, " in out
    assert "All commits that there ever were are seen. No commits are not no readers" in out
    assert topics(world, "--unused", "50d", "--topic", "orders")[0] == 0
    assert "pay.out" in topics(world, "--unused", "30d", "--tiny", "1KiB")[1]
    assert rows(topics(world, "--tiny", "1KiB", "--json")[1]).keys() == {"pay.out"}
    assert topics(world, "--topic", "orders", "--tiny")[0] == 0, "it has one partition"
    assert topics(world)[0] == 0
    assert "__consumer_offsets" not in topics(world)[1]
    assert "__consumer_offsets" in topics(world, "--internal")[1]


def test_sums_by_prefix_are_those_of_the_topics_that_are_found(world: World) -> None:
    alone = rows(topics(world, "--json")[1])
    summed = rows(topics(world, "--by-prefix", ".", "--json")[1])
    assert summed.keys() == {"pay.", ""}
    assert summed["pay."]["replica_bytes"] == alone["pay.in"]["replica_bytes"] + alone["pay.out"]["replica_bytes"]  # type: ignore[operator]
    assert (summed["pay."]["topics"], summed["pay."]["partitions"], summed["pay."]["used"]) == (2, 5, "yes")
    assert (alone["pay.in"]["topics"], topics(world, "--by-prefix", ".")[1].split()[:2]) == (None, ["Topic", "Topics"])
    assert topics(world)[1].split()[:2] == ["Topic", "On"]
    assert summed["pay."]["last_append_ms"] == NOW - DAY
    status, out = topics(world, "--by-prefix", ".", "--unused", "30d", "--json")
    assert (status, rows(out)["pay."]["topics"], rows(out)["pay."]["used"]) == (3, 1, "no")


def test_what_was_not_read_for_so_long_is_not_known(world: World) -> None:
    world.commit(NOW - 50 * DAY)
    world.compact()
    world.disk.write_high_watermarks()
    status, out = topics(world, "--unused", "30d")
    assert (status, "unused for 30d, 0 partitions" in out) == (4, True)
    assert "Of 2 topics it is not known: pay.out, orders: for how long commits are kept is not known" in out
    status, out = topics(world, "--unused", "30d", "--json")
    assert (status, {row["used"] for row in rows(out).values()}) == (4, {"unknown"})
    status, out = topics(world, "--unused", "30d", "--by-prefix", ".", "--json")
    assert (status, rows(out), "Of 2 topics it is not known" in json.loads(out)["doubts"][-1]) == (4, {}, True)
    rmtree(world.orders.directory)
    status, out = topics(world, "--tiny")
    assert (status, [line.split()[0] for line in out.splitlines()[1:2]]) == (3, ["pay.out"])
    made = partition(world.disk, "pay.late", 1, topic_id=11)
    world.metadata.write(topic_of("pay.late", 11, 2), NOW)
    made.append(batch(1, timestamp=NOW))
    world.disk.write_high_watermarks()
    assert "Of 1 topic it is not known: pay.late: not all of its partitions are seen" in topics(world, "--tiny")[1]


def test_a_job_answers_the_same_of_what_it_has_seen() -> None:
    long_ago = NOW - 40 * DAY
    row = log("orders", 0, last_append_ms=long_ago, leader=1, leader_epoch=5, facts=facts((0, 600, 10)))
    table, observer = new_table(row), new_observer()
    table.set_context(topic_partitions={"orders": 1})
    table.set_whole()
    served = Exporter("127.0.0.1", 0, table=table, observer=observer, clock=lambda: NOW / 1000, healthy=lambda: True)
    served.start()
    try:
        url = "http://{}:{}".format(*served.address)
        done = run_command("topics", "--job", url, "--unused", "30d")
        assert (done.returncode, "Of 1 topic it is not known: orders: no commits are read" in done.stdout) == (4, True)
        done = run_command("topics", "--job", url, "--json")
        assert rows(done.stdout)["orders"]["last_append_ms"] == long_ago
        done = run_command("topics", "--job", url, "--by-prefix", "")
        assert (done.returncode, "by_prefix is no separator" in done.stderr) == (2, True)
    finally:
        served.close()
