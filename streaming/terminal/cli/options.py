"""Options that several commands share: each one is the setting with its name."""

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Any, Concatenate, ParamSpec, TypeVar

import click

from streaming.common import logs
from streaming.common.settings import OPTIONS, Settings
from streaming.common.start_from import StartFrom
from streaming.errors import FormatError, UsageError
from streaming.kafka.formats.properties import parse_properties
from streaming.terminal.configuration import load

P = ParamSpec("P")
R = TypeVar("R")

_DEFAULTS = Settings()
_CONFIG = "segtail.config"
_OVERRIDES = "segtail.overrides"
_PATHS = "segtail.paths"
_FILES = ("agent_ca", "agent_cert", "agent_key", "agent_token_file", "web_config", "tls_cert", "tls_key", "tls_client_ca", "token_file")
_METAVARS = {
    "log_dirs": "DIR[,DIR...]",
    "server_properties": "FILE[,FILE...]",
    "from": "|".join(StartFrom),
    "checkpoint": "DIR",
    "class_archives": "DIR",
    "spark_checkpoints": "NAME=URI[,NAME=URI...]",
    "listen": "HOST:PORT",
    "replicas": "leaders|all",
    "agents": "ADDRESS[,ADDRESS...]",
    "metrics_listen": "HOST:PORT",
    **dict.fromkeys(_FILES, "FILE"),
}

_ANSWERED = (
    "streaming.broker.disk.availability",
    "streaming.broker.disk.broker_processes",
    "streaming.broker.disk.logdirs",
    "streaming.broker.watcher.watcher",
    "streaming.terminal.offline.coordinator_logs",
    "streaming.terminal.offline.doubts",
    "streaming.terminal.offline.local_agent",
    "streaming.terminal.offline.offline_agent",
)
"""What these modules log, the answers of commands contain as sentences."""


def with_settings(
    *names: str, defaults: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[Concatenate[Settings, P], R]], Callable[P, R]]:
    """Pass the settings to a command as its first argument, and configure its logs before it begins.

    Args:
        names: settings that are options of the command themselves (``log_dirs`` as ``--log-dirs``). ``--config`` and ``--set``, which can
            set every setting, are always available.
        defaults: what a command takes instead of a setting's default, as its help has it.
    """

    def decorate(command: Callable[Concatenate[Settings, P], R]) -> Callable[P, R]:
        @wraps(command)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            settings = _loaded(click.get_current_context().meta)
            logs.configure(settings.log_level, settings.log_format)
            return command(settings, *args, **kwargs)

        decorated: Callable[P, R] = _set_option(_config_option(run))
        for name in reversed(names):
            decorated = _own_option(name, defaults.get(name))(decorated)
        return decorated

    return decorate


def _loaded(given: Mapping[str, Any]) -> Settings:
    return load(given.get(_CONFIG), os.environ, _with_paths(given.get(_OVERRIDES, {}), given.get(_PATHS, ())))


def given(*names: str) -> list[str]:
    """Those of these settings that were given to the command, not in a file or the environment, as options; ``log_dirs`` as PATH, too."""
    meta = click.get_current_context().meta
    paths = ["PATH"] if "log_dirs" in names and meta.get(_PATHS) else []
    return [*paths, *(f"--{name.replace('_', '-')}" for name in names if name in meta.get(_OVERRIDES, {}))]


def _with_paths(overrides: Mapping[str, object], paths: Sequence[str]) -> Mapping[str, object]:
    """The settings of the command line; where a PATH is named, it is what the setting ``log_dirs`` of a file would be."""
    if not paths:
        return overrides
    named = overrides.get("log_dirs", ())
    return {**overrides, "log_dirs": [*(named.split(",") if isinstance(named, str) else named), *paths]}  # type: ignore[misc]


def _keep_assignments(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    for assignment in values:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise click.BadParameter(f"{re.split('[^A-Za-z0-9._-]', name)[0]} is not NAME=VALUE", context, parameter)
        # If an option of its own is given as well, it wins, because it is more explicit.
        context.meta.setdefault(_OVERRIDES, {}).setdefault(name.strip(), value)


_set_option = click.option(
    "--set",
    metavar="NAME=VALUE",
    multiple=True,
    help="Give any setting, or any option of Spark's (spark.…=…). May be repeated.",
    expose_value=False,
    callback=_keep_assignments,
)


def _keep_config(context: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    context.meta[_CONFIG] = value


_config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read settings from this YAML file, of the form that `segtail config` prints.",
    expose_value=False,
    callback=_keep_config,
)


def _own_option(name: str, own_default: str | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    option = OPTIONS[name]
    default = option.form.show(getattr(_DEFAULTS, option.attribute)) if own_default is None else own_default

    several = "," in _METAVARS.get(name, "")

    def keep(context: click.Context, _parameter: click.Parameter, value: str | tuple[str, ...] | None) -> None:
        if value is not None and value != ():
            keep_setting(context, name, value if isinstance(value, str) else ",".join(value))

    return click.option(
        f"--{name.replace('_', '-')}",
        f"setting_{option.attribute}",
        metavar=_METAVARS.get(name, "VALUE"),
        multiple=several,
        help=option.description + (f"  [default: {default}]" if default else ""),
        expose_value=False,
        callback=keep,
    )


def keep_setting(context: click.Context, name: str, value: object) -> None:
    """Give a setting a value, as an option of its own name does."""
    context.meta.setdefault(_OVERRIDES, {})[name] = value


def follow_log_level() -> None:
    """At SIGHUP read ``log_level`` from the file of ``--config`` again. That of a terminal that hangs up ends the command, as ever."""
    given = click.get_current_context().meta
    if not sys.stdin.isatty():
        logs.follow_level(lambda: _loaded(given).log_level)


def log_once() -> None:
    """Log nothing twice, for commands whose answer also says in sentences which logs could not be read; and sentences."""
    logs.log_once(_ANSWERED)
    logs.as_sentences()


def with_paths(command: Callable[P, R]) -> Callable[P, R]:
    """Let a command take PATH...: log dirs, or directories above some, as ``--log-dirs`` does."""
    return click.argument("paths", metavar="[PATH]...", nargs=-1, expose_value=False, callback=_keep_paths)(command)


def _keep_paths(context: click.Context, _parameter: click.Parameter, paths: tuple[str, ...]) -> None:
    keep_paths(context, paths)


def keep_paths(context: click.Context, paths: Iterable[str]) -> None:
    """Count these as log dirs besides those of ``--log-dirs``, lists of them too. Raises UsageError: one is a word that is no path."""
    paths = [path for each in paths for path in as_paths(each)]
    topics = any("--topic" in each.opts for each in context.command.params)
    for path in paths:
        if "/" not in path and not os.path.exists(path):  # noqa: PTH110
            topic = f". For a topic write --topic {path}" if topics else ""
            raise UsageError(f"there is no log dir {path} here: write its path, or that of a directory that holds some{topic}")
    context.meta.setdefault(_PATHS, []).extend(paths)


def as_paths(word: str) -> list[str]:
    """A path, or those of a list as ``--log-dirs`` takes it."""
    return [word] if os.path.exists(word) else word.split(",")  # noqa: PTH110 - also of a list that is too long for a path


def keep_spark(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> None:
    """The callback of ``--spark NAME=VALUE``: options for Spark."""
    for assignment in values:
        name, equals, value = assignment.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise click.BadParameter(f"{name} is not spark.NAME=VALUE", context, parameter)  # without the value, which may be a secret
        context.meta.setdefault(_OVERRIDES, {})[name.strip()] = value


def keep_spark_file(context: click.Context, parameter: click.Parameter, path: Path | None) -> None:
    """The callback of ``--spark-properties FILE``: options for Spark that no command line shows. ``--spark`` and ``--set`` win over it."""
    if path is None:
        return
    try:
        found = parse_properties(path.read_bytes())
    except (OSError, FormatError) as error:  # not what is in the file: it may contain a secret
        why = error.strerror if isinstance(error, OSError) else "it is no properties file"
        raise click.BadParameter(f"{path} cannot be read: {why}", context, parameter) from None
    for name, value in found:
        if name.startswith("spark."):  # as spark-submit, which leaves the others out
            context.meta.setdefault(_OVERRIDES, {}).setdefault(name, value)
