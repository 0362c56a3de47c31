"""What a start after SIGKILL reads, foretold from the log dirs that the broker left, held against what it says that it recovered then."""

from collections import Counter

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.protocol.disk_json import DiskAnswer
from streaming.cluster.usage.disk_answer import answer_of
from streaming.common.settings import Settings
from streaming.kafka.formats.names import METADATA_TOPIC
from streaming.terminal.offline.disk_reading import DiskQuestion, read_disk
from tests.broker.recovered import recovered
from tests.broker.restart_look import RestartLook
from tests.recorded.recordings import WORLDS, Disk, Replayed, replay
from tests.recorded.worlds.killed import GOES_ON, NEW, PARTITIONS, RESTED, ROLLS, TOPICS, UNNOTED


@pytest.fixture(scope="module", params=WORLDS["killed"])
def replayed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """After SIGKILL, and after the start that recovers and a clean stop."""
    return replay("killed", request.param, tmp_path_factory.mktemp("killed"))


def segments_of(replayed: Replayed, answer: str) -> list[tuple[str, int]]:
    """The segments that the broker told of, without those that every start reads."""
    return [each for each in recovered(replayed.text(answer).splitlines()) if not each[0].startswith(METADATA_TOPIC)]


def read_by_kafka(replayed: Replayed) -> Counter[str]:
    """How many bytes of each log dir the broker has recovered after SIGKILL."""
    disk = replayed.disk("killed")
    segments = {(path.parent.name, int(path.stem)): path for log_dir in disk.log_dirs for path in log_dir.glob("*-*/*.log")}
    found = Counter[str]()
    for each in segments_of(replayed, "recovered"):
        found[str(segments[each].parents[1])] += segments[each].stat().st_size
    return found


def disk_answer(disk: Disk) -> DiskAnswer:
    asked = DiskQuestion(now_ms=disk.now_ms, trials=[])
    return answer_of(read_disk(open_log_dirs(disk.log_dirs), Settings(server_properties=disk.properties), asked), "topic", 1000)


def test_the_log_dirs_have_every_kind_of_recovery_point(replayed: Replayed) -> None:
    """At the end, at the base of the last segment, inside a segment, and none."""
    read = segments_of(replayed, "recovered")
    points = {}
    for log_dir in replayed.disk("killed").log_dirs:
        assert not (log_dir / ".kafka_cleanshutdown").exists()
        for line in (log_dir / "recovery-point-offset-checkpoint").read_text().splitlines()[2:]:
            topic, partition, offset = line.split()
            points[topic, int(partition)] = int(offset)
    assert {name for name, _ in read} == {f"{topic}-{number}" for topic in TOPICS for number in range(PARTITIONS)}
    for number in range(PARTITIONS):
        read_of = {topic: [base for name, base in read if name == f"{topic}-{number}"] for topic in TOPICS}
        assert read_of[RESTED] == read_of[GOES_ON] == [0]
        assert (points[RESTED, number], points[GOES_ON, number]) == (100, 100)  # the end, and two thirds of it
        assert read_of[NEW] == [points[NEW, number]]
        assert read_of[ROLLS] == [points[ROLLS, number]]
        assert len(read_of[UNNOTED]) == 2
        assert (UNNOTED, number) not in points


def test_an_agent_foretells_the_bytes_that_a_start_reads(replayed: Replayed) -> None:
    look = RestartLook(replayed.disk("killed").log_dirs)
    found = {str(path): status for path, status in look.look().items()}
    look.close()
    by_log_dir = read_by_kafka(replayed)
    assert {path: status.recovery_bytes for path, status in found.items()} == by_log_dir
    assert sum(status.recovery_logs for status in found.values()) == PARTITIONS * len(TOPICS)
    assert all(0 < status.not_fsynced_bytes <= status.recovery_bytes for status in found.values())


def test_log_dirs_that_are_read_once_foretell_them_too(replayed: Replayed) -> None:
    answer = disk_answer(replayed.disk("killed"))
    by_log_dir = read_by_kafka(replayed)
    assert {each.log_dir: each.recovery_bytes for each in answer.log_dirs} == by_log_dir
    assert {each.recovery_threads for each in answer.log_dirs} == {1}  # as the file says that it is given


def test_after_a_clean_stop_nothing_is_read(replayed: Replayed) -> None:
    assert segments_of(replayed, "recovered_after_stop") == []
    disk = replayed.disk("stopped")
    look = RestartLook(disk.log_dirs)
    found = look.look().values()
    look.close()
    assert {(each.recovery_logs, each.recovery_bytes, each.not_fsynced_bytes) for each in found} == {(0, 0, 0)}
    assert {(each.recovery_bytes, each.not_fsynced_bytes) for each in disk_answer(disk).log_dirs} == {(0, 0)}
