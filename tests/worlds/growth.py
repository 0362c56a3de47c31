"""A log that grows on a disk."""

from typing import Any

from tests.worlds.retention import MS, facts, orders

WEEK, HOUR = '{"topic":{"retention.ms":"604800000","segment.ms":"3600000"}}', '{"topic":{"retention.ms":"3600000","segment.ms":"600000"}}'


H = 3600


def grows(configs: str = WEEK, **values: Any) -> Any:
    """1,000 bytes an hour in the last two days."""
    segments = [(10 * n, 1000, (48 - n) * H) for n in range(49)]
    listed = facts(*segments, (490, 0, 0), configs=configs, oldest_timestamp=MS - 49 * H * 1000)
    return orders(listed, **{"log_dir": "/d0", "log_end_offset": 490, "active_segment": 490, **values})
