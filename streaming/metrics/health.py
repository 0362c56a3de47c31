"""What agents say of brokers and log dirs, as metric families. An agent that is down says nothing: what it said last is of the past."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import Metric as Samples
from prometheus_client.metrics_core import GaugeMetricFamily

from streaming.agent.messages import BlockedFile, BrokerStatus, LogDirStatus, Registered
from streaming.metrics import definitions
from streaming.metrics.definitions import Metric

_OTHER = ("deleted", "delete", "stray", "future", "index", "metadata")
"""Kinds of bytes that are no live log's, by the names of `streaming.agent.messages.LogDirStatus`."""


def families(
    brokers: Sequence[BrokerStatus], log_dirs: Sequence[LogDirStatus], watched: frozenset[int], blocked: Iterable[BlockedFile] = ()
) -> Iterator[Samples]:
    """One family a metric.

    Args:
        brokers: of the agents that are up.
        log_dirs: of the same.
        watched: every broker that an agent watches, be it up or down.
        blocked: files in which agents that are up wait.
    """
    readable = [each for each in log_dirs if each.up]
    yield _gauge(definitions.LOG_DIR_UP, ((_of(each), each.up and each.registered is not False) for each in log_dirs))
    yield _gauge(definitions.LOG_DIR_BLOCKED, (((each.broker, each.log_dir, each.path), each.seconds) for each in blocked))
    yield _gauge(definitions.LOG_DIR_FREE, ((_of(each), each.free) for each in readable))
    yield _gauge(definitions.LOG_DIR_CAPACITY, ((_of(each), each.capacity) for each in readable))
    yield _gauge(definitions.LOG_DIR_CHECKPOINT, ((_of(each), each.checkpoint_ms / 1000) for each in readable if each.checkpoint_ms >= 0))
    yield _gauge(definitions.LOG_DIR_OTHER, (((*_of(each), kind), getattr(each, kind)) for each in readable for kind in _OTHER))
    yield _gauge(definitions.BROKER_FENCED, (((each.broker,), each.fenced) for each in _registered(brokers)))
    yield _gauge(definitions.UNOBSERVED, (((broker,), count) for broker, count in sorted(unobserved(brokers, watched).items())))
    yield _gauge(definitions.CONTROLLER, (((), controller) for controller in _controller(brokers)))


def unobserved(brokers: Iterable[BrokerStatus], watched: frozenset[int]) -> dict[int, int]:
    """How many partitions are led by each broker that nobody watches."""
    newest = _newest(brokers)
    return {} if newest is None else {led.broker: led.partitions for led in newest.led if led.broker not in watched}


def _newest(brokers: Iterable[BrokerStatus]) -> BrokerStatus | None:
    """The one whose copy of the metadata log has come furthest: a broker that is down does not hear of its own end."""
    return max(brokers, key=lambda each: each.metadata_offset, default=None)


def fenced(brokers: Iterable[BrokerStatus]) -> list[int]:
    """Brokers that the controller has fenced off."""
    return [each.broker for each in _registered(brokers) if each.fenced]


def _registered(brokers: Iterable[BrokerStatus]) -> list[Registered]:
    newest = _newest(brokers)
    return [] if newest is None else sorted(newest.registered, key=lambda each: each.broker)


def coordinator_partitions(brokers: Iterable[BrokerStatus]) -> int | None:
    """How many partitions `__transaction_state` has: 0 where there is no such topic, None where nobody can tell."""
    return max((each.transaction_partitions for each in brokers if each.transaction_partitions is not None), default=None)


def _controller(brokers: Iterable[BrokerStatus]) -> list[int]:
    """The controller that most brokers name, none where nobody names one."""
    named = Counter(each.controller for each in brokers if each.controller >= 0)
    return [named.most_common(1)[0][0]] if named else []


def _of(status: LogDirStatus) -> tuple[str, str]:
    return "" if status.broker < 0 else str(status.broker), status.log_dir


def _gauge(metric: Metric, rows: Iterable[tuple[Sequence[object], float]]) -> GaugeMetricFamily:
    """Two agents may tell of one broker or log dir: then one of them counts."""
    family = GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
    for labels, value in {tuple(map(str, labels)): float(value) for labels, value in rows}.items():
        family.add_metric(labels, value)
    return family
