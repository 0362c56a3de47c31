"""What limits the logs of a topic on a broker: what its agent hands over, and below it what people tell the job."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from streaming.errors import FormatError
from streaming.rules.limits import Configs, Limits, TopicPattern, effective_limits, pattern_configs, read_configs

LimitsOf = Callable[[int, str, str], Limits]
"""Of broker, topic and the text that its agent hands over."""


class Limiter:
    """The limits of every topic on every broker, from what agents hand over and what people give beside it.

    Args:
        static: asks what ``server.properties`` sets, by node id; another mapping where that has changed.
        assumed: what brokers are told to have whose file is not among those.
        patterns: what people give for topics, which counts where no metadata log tells.
    """

    def __init__(
        self, static: Callable[[], Mapping[int, Configs]], assumed: Configs | None = None, patterns: Sequence[TopicPattern] = ()
    ) -> None:
        self._static = static
        self._assumed = assumed or Configs()
        self._patterns = tuple(patterns)
        self._held: tuple[Mapping[int, Configs], LimitsOf] | None = None

    def now(self) -> LimitsOf:
        """The limits of a topic on a broker by its agent's text, as things stand: for one page, and from any thread."""
        static, held = self._static(), self._held
        if held is None or held[0] is not static:
            held = self._held = static, lru_cache(1 << 16)(partial(self._of, static))
        return held[1]

    def min_isr(self, broker: int) -> int:
        """min.insync.replicas where the metadata log sets none: that of the broker, else the largest of those that are known."""
        static = self._static()
        given = [static[broker]] if broker in static else [self._assumed, *static.values()]
        return max(effective_limits("", configs).min_insync_replicas for configs in given)

    def _of(self, static: Mapping[int, Configs], broker: int, topic: str, configs: str) -> Limits:
        try:
            told = read_configs(configs)
        except FormatError:  # an agent of another version: what it cannot say is assumed
            told = Configs()
        given = Configs() if told.topic_known else pattern_configs(topic, self._patterns)
        return effective_limits(topic, told.over(given).over(static.get(broker, self._assumed)))
