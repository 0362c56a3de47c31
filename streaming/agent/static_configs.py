"""What people tell of configurations that no log dir holds: ``server.properties``, or what stands in for it in segtail's own options."""

import difflib
import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from streaming.disk.server_properties import read_server_properties
from streaming.errors import SettingsError
from streaming.rules.limits import NAMES, Configs, Source, TopicPattern, broker_configs, topic_configs

log = logging.getLogger(__name__)


def assumed_configs(broker_config: Mapping[str, str]) -> Configs | None:
    """What brokers are told to have whose ``server.properties`` is not given, None for nothing.

    Raises:
        SettingsError: it holds what is no configuration of a broker that limits logs, or no value of it.
    """
    if not broker_config:
        return None
    assumed = broker_configs(broker_config.items(), Source.STATIC)
    _refuse("broker_config", broker_config, assumed)
    return assumed


def static_configs(files: Iterable[Path], broker_config: Mapping[str, str], brokers: Iterable[int] | None) -> dict[int, Configs]:
    """The static configurations of brokers, by node id; those of whom nothing is known are not among them.

    A value in a file that cannot be read is named in the log: a broker would not have started with it.

    Args:
        files: the ``server.properties`` of some brokers.
        broker_config: what the others are told to have, empty for nothing.
        brokers: the node ids that are asked for; None for those whose file is given.

    Raises:
        UsageError: a file cannot be read or does not say whose it is.
        SettingsError: ``broker_config`` holds what is no such configuration, or no value of it.
    """
    assumed, wanted = assumed_configs(broker_config), None if brokers is None else set(brokers)
    found = {} if assumed is None or wanted is None else dict.fromkeys(wanted, assumed)
    for properties in read_server_properties(files):
        configs = broker_configs(properties.configs, Source.STATIC)
        for refused in configs.rejected:
            extra = {"broker": properties.node_id, "config": refused.name, "value": refused.value}
            log.warning("value in server.properties cannot be read: Kafka's default stands in", extra=extra)
        if wanted is not None and properties.node_id not in wanted:
            log.warning("server.properties of a broker without a log dir here", extra={"broker": properties.node_id})
        found[properties.node_id] = configs
    return found


def topic_patterns(topic_config: Mapping[str, Mapping[str, str]]) -> tuple[TopicPattern, ...]:
    """What people tell of topics, in their order.

    Raises:
        SettingsError: one holds what is no configuration of a topic, or no value of it.
    """
    patterns = []
    for pattern, values in topic_config.items():
        configs = topic_configs(values.items())
        _refuse(f"topic_config of {pattern}", values, configs)
        patterns.append(TopicPattern(re.compile(pattern), configs))
    return tuple(patterns)


def _refuse(option: str, given: Mapping[str, str], configs: Configs) -> None:
    """An option with a typo must not quietly leave Kafka's default."""
    for name in given:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f', did you mean "{near[0]}"?' if near else ""
            raise SettingsError(f'{option}: "{name}" is not a configuration that limits logs{hint}')
    for refused in configs.rejected:
        raise SettingsError(f'{option}: {refused.name} cannot be "{refused.value}"')
