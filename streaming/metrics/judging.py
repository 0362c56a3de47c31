"""The judges of the job's numbers, made from its settings."""

from datetime import timedelta

from streaming.agent.static_configs import assumed_configs, static_configs, topic_patterns
from streaming.metrics.judges import Judges
from streaming.metrics.limiter import Limiter
from streaming.metrics.overdue import DeletableSince
from streaming.metrics.transactions import READ_WITHIN_MS, TransactionJudge
from streaming.reloading import Reloading
from streaming.settings import Settings


def judges_of(settings: Settings, *, once: bool = False, list_all: bool = False) -> Judges:
    """The judges for a table; ``once`` for a table that is read a single time.

    A changed ``server.properties`` is loaded again while the job runs.

    Args:
        list_all: list every open transaction, not only the late ones.

    Raises:
        UsageError: a ``server.properties`` cannot be read, or a given configuration is not valid.
    """
    transactions = TransactionJudge(
        hanging_after_ms=_milliseconds(settings.hanging_after),
        stuck_after_ms=_milliseconds(settings.stuck_after),
        late_after_ms=None if list_all else _milliseconds(settings.late_after),
        late_limit=settings.late_limit,
        read_within_ms=max(READ_WITHIN_MS, 3 * _milliseconds(settings.longest_pause)),
        once=once,
    )
    files = settings.server_properties
    static = Reloading(lambda: (static_configs(files, {}, None), files))
    limiter = Limiter(
        static.get,
        assumed_configs(settings.broker_config),
        topic_patterns(settings.topic_config),
    )
    deletable = None if once else DeletableSince()
    return Judges(
        transactions=transactions,
        limiter=limiter,
        deletable=deletable,
        assume_replicated=settings.assume_replicated,
        overdue_after_ms=_milliseconds(settings.overdue_after),
    )


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
