"""When retention deletes offsets of the logs of a page."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from streaming.broker.disk.logdirs import open_log_dirs
from streaming.broker.watcher.registry import Scope
from streaming.cluster.consumers.losses import losses_of
from streaming.common.settings import Settings
from streaming.terminal.offline.single_reading import SingleReading
from tests.builders import NOW, batch, log_dir, partition

HOUR = 3_600_000


def test_an_offset_of_an_observed_log_is_deleted_when_its_segment_has_passed_the_limit(tmp_path: Path) -> None:
    disk = log_dir(tmp_path)
    for topic, age in (("a", 3), ("b", 1), ("c", 2)):
        log = partition(disk, topic, topic_id=ord(topic))
        log.append(batch(5, timestamp=NOW - age * HOUR))
        log.roll()
        log.append(batch(5, timestamp=NOW - 60_000))
    disk.write_high_watermarks()
    settings = Settings(broker_config={"log.retention.ms": str(24 * HOUR)})
    with SingleReading(open_log_dirs([disk.path]), settings, lambda *_: Scope(once=True), NOW) as reading:
        seen, _ = reading.see()
        names, observed = np.array(seen.observed.names), seen.observed
        items = np.array([int(np.flatnonzero(names == topic)[0]) for topic in ("c", "a", "a")])
        found = losses_of(observed, seen.retention, items, np.array([2, 0, 7]), NOW)
        assert found.at_ms[:2].tolist() == [NOW + 22 * HOUR + 5, NOW + 21 * HOUR + 5]
        assert (found.first_end.tolist(), found.last_end.tolist()) == ([5, 5, 10], [5, 5, -1])  # more comes to the segment that grows
        assert found.at_ms[2] == NOW + 24 * HOUR - 60_000 + 5
        assert found.latest_ms[2] > NOW + 7 * 24 * HOUR  # its segment grows still, and is rolled in a week
        idle = replace(seen.retention, watched=np.zeros(len(seen.retention.watched)))
        still = losses_of(observed, idle, items, np.array([2, 0, 7]), NOW)
        assert still.at_ms.tolist() == [NOW + 22 * HOUR + 5, NOW + 21 * HOUR + 5, NOW + 24 * HOUR - 60_000 + 5]
        assert losses_of(observed, seen.retention, np.empty(0, np.int64), np.empty(0, np.int64), NOW).at_ms.tolist() == []
