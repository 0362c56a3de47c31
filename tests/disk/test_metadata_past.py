"""Who led before the newest snapshot of a metadata log, as far as the disk shows it."""

import itertools
import shutil
from pathlib import Path

import pytest

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.disk.metadata_log import MetadataLog, MetadataPast
from streaming.errors import FormatError
from streaming.kafka.formats.cluster_image import ClusterImage
from tests.builders import log_dir

DATA = Path(__file__).parents[1] / "data" / "metadata"
SEGMENT = "00000000000000000000.log"

Led = dict[tuple[str, int, int], int | None]


def metadata_of(tmp_path: Path, cluster: str) -> Path:
    folder = log_dir(tmp_path).path / "__cluster_metadata-0"
    folder.mkdir()
    shutil.copy(DATA / cluster / "log.bin", folder / SEGMENT)
    for snapshot in (DATA / cluster).glob("*.checkpoint"):
        shutil.copy(snapshot, folder / snapshot.name)
    return folder


def led(image: ClusterImage) -> Led:
    """The leader of every epoch of every partition."""
    return {
        (topic.topic_id, number, epoch): image.leader_in(topic.topic_id, number, epoch)
        for topic in image.topics()
        for number in image.partition_numbers(topic.topic_id)
        for epoch in range(getattr(image.partition(topic.topic_id, number), "leader_epoch", -1) + 1)
    }


def whole(cluster: str) -> ClusterImage:
    image = ClusterImage()
    image.apply(memoryview((DATA / cluster / "log.bin").read_bytes()))
    return image


@pytest.mark.parametrize("cluster", ["node_down", "three_nodes", "unclean_election", "with_snapshots"])
def test_an_image_from_the_newest_snapshot_learns_all_that_the_log_shows(tmp_path: Path, cluster: str) -> None:
    folder = metadata_of(tmp_path, cluster)
    log = MetadataLog(open_log_dirs([folder.parent]))
    image, past = log.advance(None), log.past()
    assert (past is None) == (cluster != "with_snapshots")
    if past is not None:
        older = past.advance(60)
        assert older is not None
        image.recall(older)
    expected = led(whole(cluster))
    assert led(image) == expected
    assert None not in expected.values()
    assert any(epoch for _, _, epoch in expected) or cluster == "with_snapshots"


def test_it_is_worked_off_in_slices(tmp_path: Path) -> None:
    folder = metadata_of(tmp_path, "with_snapshots")
    clock = itertools.count()
    past = MetadataPast(folder, 103, lambda: next(clock))
    assert past.advance(1) is None
    older = next(image for image in iter(lambda: past.advance(1), 0) if image is not None)
    assert isinstance(older, ClusterImage)
    assert older.next_offset >= 103


def test_where_the_disk_shows_nothing_of_before_nothing_is_learnt(tmp_path: Path) -> None:
    folder = metadata_of(tmp_path, "with_snapshots")
    (folder / SEGMENT).rename(folder / "00000000000000000103.log")
    for snapshot in sorted(folder.glob("*.checkpoint"))[:-1]:
        snapshot.unlink()
    older = MetadataPast(folder, 103).advance(60)
    assert older is not None
    assert (older.topics(), older.next_offset) == ((), 0)


def test_a_log_that_ends_before_the_snapshot_is_not_whole(tmp_path: Path) -> None:
    folder = metadata_of(tmp_path, "with_snapshots")
    content = (folder / SEGMENT).read_bytes()
    (folder / SEGMENT).write_bytes(content[:2000])
    with pytest.raises(FormatError, match="103 is expected"):
        MetadataPast(folder, 103).advance(60)
