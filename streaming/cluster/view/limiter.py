"""The limits of a topic's logs on a broker: from its agent's text, and with less priority from the job's settings."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial

from streaming.errors import FormatError
from streaming.rules.config_values import Configs, TopicPattern, pattern_configs, read_configs
from streaming.rules.limits import Limits, effective_limits

log = logging.getLogger(__name__)

LimitsOf = Callable[[int, str, str], Limits]
"""The limits of a topic, from broker, topic and the text that its agent sends."""


class Limiter:
    """The limits of every topic on every broker, from what agents send and from the job's settings.

    Args:
        static: returns the configurations in ``server.properties`` files, by node id; a new mapping if a file has changed.
        assumed: the assumed configuration of brokers without such a file.
        patterns: configurations of topics from the settings, which count if no metadata log gives any.
        tried: settings of topics that are tried: they count before all others.
    """

    def __init__(
        self,
        static: Callable[[], Mapping[int, Configs]],
        assumed: Configs | None = None,
        patterns: Sequence[TopicPattern] = (),
        tried: Callable[[str], Configs] | None = None,
    ) -> None:
        self._static = static
        self._assumed = assumed or Configs()
        self._patterns = tuple(patterns)
        self._tried = tried
        self._logged: set[int] = set()
        self._held: tuple[Mapping[int, Configs], LimitsOf] | None = None

    def trying(self, tried: Callable[[str], Configs]) -> "Limiter":
        """The same, with settings that are tried."""
        return Limiter(self._static, self._assumed, self._patterns, tried)

    def now(self) -> LimitsOf:
        """The present limits of a topic on a broker by its agent's text: for one page, and from any thread."""
        static, held = self._static(), self._held
        if held is None or held[0] is not static:
            held = self._held = static, lru_cache(1 << 16)(partial(self._of, static))
        return held[1]

    def given(self, broker: int) -> Configs:
        """What the settings say of a broker's own level."""
        return self._static().get(broker, self._assumed)

    def is_given(self, broker: int) -> bool:
        """Whether the settings have a broker's own level, be it that of every broker."""
        return broker in self._static() or self._assumed != Configs()

    def min_isr(self, broker: int) -> int:
        """min.insync.replicas if the metadata log sets none: that of the broker, else the largest known one."""
        static = self._static()
        given = [static[broker]] if broker in static else [self._assumed, *static.values()]
        return max(effective_limits("", configs).min_insync_replicas for configs in given)

    def _of(self, static: Mapping[int, Configs], broker: int, topic: str, configs: str) -> Limits:
        limits = self._limits(static, broker, topic, configs)
        if static and limits.assumed and broker not in static and broker not in self._logged:
            self._logged.add(broker)
            log.warning(
                "no server.properties is of this broker, so its limits are assumed",
                extra={"broker": broker, "nodes": ", ".join(map(str, sorted(static)))},
            )
        return limits

    def _limits(self, static: Mapping[int, Configs], broker: int, topic: str, configs: str) -> Limits:
        try:
            own = read_configs(configs)
        except FormatError:  # an agent of another version: its values are not understood and are assumed
            own = Configs()
        given = Configs() if own.topic_known else pattern_configs(topic, self._patterns)
        known = given.over(own).over(static.get(broker, self._assumed))  # a topic's own settings come before a broker's
        return effective_limits(topic, known if self._tried is None else self._tried(topic).over(known))
