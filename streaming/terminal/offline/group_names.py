"""The names of all groups that coordinators' logs of log dirs have, for a name that none of them has."""

import time

from streaming.broker.disk.availability import LogDirs
from streaming.common.settings import Settings
from streaming.terminal.offline.group_reading import replay_groups


def group_names(log_dirs: LogDirs, settings: Settings) -> set[str]:
    """Of those that have commits, and of those that have members."""
    replayed = replay_groups(log_dirs, (), settings, time.time, time.sleep, lambda _: None).logs.replayed
    changes = [each.replay.changes(0) for each in replayed]
    return {name for each in changes for rows in (each.commits, each.groups) for name in rows["group"].to_pylist()}
