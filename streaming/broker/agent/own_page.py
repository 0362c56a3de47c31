"""An agent's own metrics, for its own /metrics: about the agent itself, not about Kafka's logs."""

from collections.abc import Callable, Iterable
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client import Metric as Samples
from prometheus_client.process_collector import ProcessCollector

from streaming.common.definitions.agent_metrics import CALLS, ROWS, UNAUTHORIZED
from streaming.common.definitions.client_family import client_family
from streaming.common.definitions.metric import Metric


class AgentMetrics:
    """Counters that the agent's parts increment, and values that are computed when the page is made. For several threads."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._making = Lock()  # one page at a time
        self._series: dict[Metric, list[tuple[tuple[str, ...], Callable[[], float | None]]]] = {}
        self._registry.register(self)
        self.calls = self._counter(CALLS)
        self.rows = self._counter(ROWS)
        self.unauthorized = self._counter(UNAUTHORIZED)

    def show(self, metric: Metric, value: Callable[[], float | None], *labels: str) -> None:
        """Show a value that is kept elsewhere. Where it is None, there is no sample."""
        self._series.setdefault(metric, []).append((labels, value))

    def collect(self) -> Iterable[Samples]:
        """Yield the samples, as `prometheus_client` expects them."""
        for metric, series in self._series.items():
            samples = [(labels, number) for labels, value in series if (number := value()) is not None]
            if samples:
                yield client_family(metric, samples)

    def page(self) -> bytes:
        """The page, in Prometheus' text format."""
        with self._making:
            return generate_latest(self._registry)

    def _counter(self, metric: Metric) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self._registry)
