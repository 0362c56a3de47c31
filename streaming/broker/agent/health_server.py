"""What an agent tells about itself over HTTP: whether it is alive, whether it serves, its own metrics. Nothing about Kafka's logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import monotonic

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client import Metric as Samples
from prometheus_client.process_collector import ProcessCollector

from streaming.broker.disk.opening import shortage
from streaming.common.definitions.agent_metrics import CALLS, HTTP_CUTS, HTTP_REFUSALS, ROWS, UNAUTHORIZED, WEB_FAILURES, WRONG_PASSWORDS
from streaming.common.definitions.client_family import client_family
from streaming.common.definitions.metric import Metric
from streaming.common.units import Address
from streaming.common.web.gate import Gate
from streaming.common.web.messages import TEXT_TYPE, Response, sentence
from streaming.common.web.server import Server
from streaming.errors import UsageError

HEALTHY_SECONDS = 60.0
"""Without a sign of life of the watcher for this long, the agent is stuck. A poll takes milliseconds, or seconds for a backlog."""


class HealthServer:
    """Answers requests at an address of their own from its creation until `close`.

    Raises:
        UsageError: nothing can listen there, or the web config cannot be used.
    """

    def __init__(self, listen: Address, web_config: Path | None, pages: HealthPages) -> None:
        gate = Gate(web_config)
        try:
            self._server = Server(listen.host, listen.port, lambda request: pages.answer(request.path), gate, monotonic)
        except OSError as error:
            raise UsageError(
                f"cannot listen on {listen}: {error.strerror}; stop the process that uses it, "
                "or choose another address with --metrics-listen HOST:PORT"
            ) from error
        self.url = f"{'https' if gate.encrypted else 'http'}://{Address(listen.host, self._server.address[1])}"
        metrics = pages.metrics
        metrics.show(WEB_FAILURES, lambda: self._server.counts().failures)
        metrics.show(HTTP_CUTS, lambda: self._server.counts().cuts)
        metrics.show(HTTP_REFUSALS, lambda: self._server.counts().refusals)
        metrics.show(WRONG_PASSWORDS, lambda: self._server.counts().wrong)
        self._server.start("health")

    def close(self) -> None:
        """Stop answering and release the port."""
        self._server.close()


class HealthPages:
    """What an agent answers about itself. Thread-safe."""

    def __init__(self, metrics: AgentMetrics, pulse: Pulse) -> None:
        self.metrics = metrics
        self._pulse = pulse
        self.waits_for: Callable[[], Iterable[str]] = tuple
        """Returns the files in which a call has not returned. Their log dirs are not watched, but the agent still counts as healthy."""

    def answer(self, path: str) -> Response:
        """The answer to a request for a path."""
        match path:
            case "/metrics":
                return Response(status=HTTPStatus.OK, content_type=TEXT_TYPE, body=self.metrics.page())
            case "/-/healthy":
                short = ["too many open files"] if shortage.lasts else []
                word = "\n".join(("healthy", *(f"does not answer: {file}" for file in self.waits_for()), *short))
                return _state(self._pulse.healthy, word, "the log dirs have not been looked at lately")
            case "/-/ready":
                return _state(self._pulse.ready, "ready", "the log dirs have not been looked at yet")
            case "/":
                return sentence(HTTPStatus.OK, "segtail agent: /metrics /-/healthy /-/ready")
        return sentence(HTTPStatus.NOT_FOUND, "not found")


class AgentMetrics:
    """Counters that the agent's parts increment, and values that are computed when the page is made. Thread-safe."""

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


class Pulse:
    """The time of the watcher's last sign of life. Thread-safe."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._last: float | None = None

    def beat(self) -> None:
        """Note a sign of life."""
        self._last = self._clock()

    @property
    def age(self) -> float:
        """Seconds since the last sign of life, or since the start if there was none."""
        return self._clock() - (self._began if self._last is None else self._last)

    @property
    def healthy(self) -> bool:
        """Whether the last sign of life is recent."""
        return self.age < HEALTHY_SECONDS

    @property
    def ready(self) -> bool:
        """Whether there has been a sign of life."""
        return self._last is not None


def _state(good: bool, word: str, otherwise: str) -> Response:
    return sentence(HTTPStatus.OK, word) if good else sentence(HTTPStatus.SERVICE_UNAVAILABLE, otherwise)
