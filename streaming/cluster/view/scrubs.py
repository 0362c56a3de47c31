"""What agents report about their scrubs, as metric families: nothing if the scrub is off, or the agent is down."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from prometheus_client import Metric as Samples

from streaming.broker.protocol.status_messages import ScrubStatus
from streaming.cluster.view.table import Replica
from streaming.common.definitions import log_dir_metrics
from streaming.common.definitions.client_family import client_family


def families(scrubs: Sequence[ScrubStatus]) -> Iterator[Samples]:
    """One family per metric.

    Args:
        scrubs: of the agents that are up.
    """
    yield client_family(log_dir_metrics.SCRUB_CHECKED, ((_of(each), each.checked) for each in scrubs))
    yield client_family(log_dir_metrics.SCRUB_PASS_RATIO, ((_of(each), _ratio(each)) for each in scrubs if each.began_ms >= 0))
    yield client_family(log_dir_metrics.SCRUB_PASS_START, ((_of(each), each.began_ms / 1000) for each in scrubs if each.began_ms >= 0))
    yield client_family(log_dir_metrics.SCRUB_LAST_PASS, ((_of(each), each.ended_ms / 1000) for each in scrubs if each.ended_ms >= 0))
    yield client_family(log_dir_metrics.SCRUB_CORRUPT, ((_of(each), each.corrupt) for each in scrubs))
    yield client_family(log_dir_metrics.SCRUB_UNREADABLE, ((_of(each), each.unreadable) for each in scrubs))
    yield client_family(
        log_dir_metrics.SCRUB_BLOCKED, (((*_of(each), each.waits_at), each.waits_seconds) for each in scrubs if each.waits_at)
    )
    yield client_family(log_dir_metrics.SCRUB_CORRUPT_PLACE, _corrupt_batches(scrubs))


def corrupt_replicas(scrubs: Iterable[ScrubStatus]) -> dict[Replica, int]:
    """The damaged places of each replica that has any."""
    return {Replica(scrub.broker, each.topic, each.partition): each.batches for scrub in scrubs for each in scrub.corrupt_logs}


def _corrupt_batches(scrubs: Iterable[ScrubStatus]) -> Iterator[tuple[tuple[object, ...], float]]:
    for scrub in scrubs:
        for each in scrub.corrupt_batches:
            segment = PurePath(each.path).name
            yield (*_of(scrub), each.topic, each.partition, segment, each.offset, each.fault), each.position


def _ratio(scrub: ScrubStatus) -> float:
    if scrub.ended_ms >= scrub.began_ms:
        return 1.0
    return scrub.logs_checked / scrub.logs if scrub.logs else 0.0


def _of(scrub: ScrubStatus) -> tuple[object, ...]:
    return scrub.broker, scrub.log_dir
