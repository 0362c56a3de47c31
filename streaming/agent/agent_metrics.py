"""An agent's own metrics, for its own /metrics: about the agent itself, not about Kafka's logs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Info, generate_latest
from prometheus_client import Metric as Samples
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector


@dataclass(frozen=True, slots=True)
class _Shown:
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily]
    name: str
    text: str
    value: Callable[[], float | None]


class AgentMetrics:
    """Counters that the agent's parts increment, and values that are computed when the page is made. For several threads."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._making = Lock()  # one page at a time
        self._shown: list[_Shown] = []
        registry.register(self)
        self.calls = Counter("segtail_agent_calls", "Calls of jobs, and what became of them.", ("call", "result"), registry=registry)
        self.rows = Counter("segtail_agent_rows", "Rows that were sent to jobs.", registry=registry)
        self.refused = Counter("segtail_agent_unauthorized", "Calls that showed no token which this agent knows.", registry=registry)

    def add_info(self, version: str, agent: str, brokers: Iterable[int]) -> None:
        """Add the series with the agent's name, version and brokers."""
        info = Info("segtail_agent_build", "The agent, its version and the brokers whose log dirs it watches.", registry=self._registry)
        info.info({"version": version, "agent": agent, "brokers": ",".join(map(str, brokers))})

    def gauge(self, name: str, text: str, value: Callable[[], float | None]) -> None:
        """A value that goes up and down. Where it is None, there is no sample."""
        self._shown.append(_Shown(GaugeMetricFamily, name, text, value))

    def counter(self, name: str, text: str, value: Callable[[], float]) -> None:
        """A value that only grows and is kept elsewhere."""
        self._shown.append(_Shown(CounterMetricFamily, name, text, value))

    def collect(self) -> Iterable[Samples]:
        """Yield the samples, as `prometheus_client` expects them."""
        for shown in self._shown:
            value = shown.value()
            if value is not None:
                yield shown.kind(shown.name, shown.text, value=value)

    def page(self) -> bytes:
        """The page, in Prometheus' text format."""
        with self._making:
            return generate_latest(self._registry)
