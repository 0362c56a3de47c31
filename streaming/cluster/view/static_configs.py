"""Configurations that no log dir contains: from ``server.properties``, or from segtail's own options instead."""

import difflib
import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from streaming.broker.disk.identity import read_server_properties
from streaming.errors import SettingsError
from streaming.rules.config_levels import Configs, TopicPattern, broker_configs, topic_configs
from streaming.rules.config_values import NAMES, ValueSource

log = logging.getLogger(__name__)


def assumed_configs(broker_config: Mapping[str, str]) -> Configs | None:
    """The configurations of brokers without a given ``server.properties``, from the option; None if it is empty.

    Raises:
        SettingsError: it has a name that is no broker configuration that limits logs, or a value that is not valid.
    """
    if not broker_config:
        return None
    assumed = broker_configs(broker_config.items(), ValueSource.STATIC)
    _refuse("broker_config", broker_config, assumed)
    return assumed


def static_configs(files: Iterable[Path], broker_config: Mapping[str, str], brokers: Iterable[int] | None) -> dict[int, Configs]:
    """The static configurations of brokers, by node id. Brokers without any known configuration are left out.

    If a value in a file cannot be read, it is logged: a broker would not have started with it.

    Args:
        files: the ``server.properties`` of some brokers.
        broker_config: the configurations of all other brokers, empty for none.
        brokers: the node ids to return; None for those with a given file.

    Raises:
        UsageError: a file cannot be read, or does not contain the node id.
        SettingsError: ``broker_config`` has a name that is no such configuration, or a value that is not valid.
    """
    assumed, wanted = assumed_configs(broker_config), None if brokers is None else set(brokers)
    found = {} if assumed is None or wanted is None else dict.fromkeys(wanted, assumed)
    for properties in read_server_properties(files):
        configs = broker_configs(properties.configs, ValueSource.STATIC)
        for refused in configs.rejected:
            extra = {"broker": properties.node_id, "config": refused.name, "value": refused.value}
            log.warning("value in server.properties cannot be read: what stands in for it is assumed", extra=extra)
        if wanted is not None and properties.node_id not in wanted:
            log.warning("server.properties of a broker without a log dir here", extra={"broker": properties.node_id})
        found[properties.node_id] = configs
    return found


def topic_patterns(topic_config: Mapping[str, Mapping[str, str]]) -> tuple[TopicPattern, ...]:
    """The configurations of topics from the option, in its order.

    Raises:
        SettingsError: one has a name that is no topic configuration, or a value that is not valid.
    """
    patterns = []
    for pattern, values in topic_config.items():
        configs = topic_configs(values.items())
        _refuse(f"topic_config of {pattern}", values, configs)
        patterns.append(TopicPattern(re.compile(pattern), configs))
    return tuple(patterns)


def _refuse(option: str, given: Mapping[str, str], configs: Configs) -> None:
    """Raise an error, because an option with a typo must not silently leave Kafka's default."""
    for name in given:
        if name not in NAMES:
            near = difflib.get_close_matches(name, NAMES, n=1)
            hint = f', did you mean "{near[0]}"?' if near else ""
            raise SettingsError(f'{option}: "{name}" is not a configuration that limits logs{hint}')
    for refused in configs.rejected:
        raise SettingsError(f'{option}: {refused.name} cannot be "{refused.value}"')
