"""Where a new consumer begins in the logs that already exist: one declaration for options, the wire and the watcher."""

from enum import StrEnum


class StartFrom(StrEnum):
    """The names are those of the option ``start_from`` and of the message that registers a consumer."""

    EARLIEST = "earliest"  # the first byte on disk
    ACTIVE = "active"  # the beginning of each active segment
    LATEST = "latest"  # the end of each log
