"""Combines the settings from all sources, and writes them as a file.

A value comes from the command line, else from the environment (``SEGTAIL_<NAME>``), else from a YAML file, else it is the default.
Everything that is not understood is an error that names the option and its source, because an option with a typo must not silently keep its
default.

pydantic-settings would replace the thirty lines that read the sources, but it passes over misspelt variables and does not say where a wrong
value stands.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from streaming.common.query_checkpoints import SameCheckpointError
from streaming.common.settings import OPTIONS, Settings
from streaming.common.units import plain
from streaming.errors import SettingsError

MASK = "*********(masked)"

SECRET_NAMES = (
    r"secret|passw|passphrase|token|credential|cookie|authorization|signature|user[._-]?info|"
    r"(?:access|account|encryption|private|api|shared|signing|storage|keystore)[._-]?key|"
    r"(?<![a-z])(?:sas|sig|pwd|jwt|hmac)(?![a-z])"
)
"""Names of secrets, or parts of them. Words of three letters stand alone: ``sasl`` names no ``sas``."""

_SECRET = re.compile(rf"{SECRET_NAMES}|private key-----|://[^/@\s]*:[^/@\s]*@", re.IGNORECASE)
"""As `spark.redaction.regex`, and some more. A value may name a secret too: ``-Djavax.net.ssl.trustStorePassword=...``."""

ENVIRONMENT_PREFIX = "SEGTAIL_"

_MAPPINGS = ("spark", "broker_config", "topic_config")

# A variable's name has no dots: SEGTAIL_EXPORT_TOPICS gives export.topics.
_VARIABLES = {name.replace(".", "_"): name for name in OPTIONS}

# Kubernetes sets these variables in every container of a namespace with a Service named segtail or segtail-*. The pattern is for
# NAME=value, after segtail's prefix was removed.
_SERVICE_LINK = re.compile(
    r"(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)=.*|PORT=(tcp|udp|sctp)://.*|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?=.*)", re.DOTALL
)


def load(config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    """Combine the settings from all sources.

    Args:
        config: a YAML file, or None for none.
        environ: the environment; only names that begin with ``SEGTAIL_`` count.
        overrides: the values from the command line, by option name; a name that begins with ``spark.`` is one of Spark's.

    Raises:
        SettingsError: the file cannot be read, an option is unknown, or a value is not valid. Names every such option, its source, and what
            is accepted.
    """
    given: dict[str, _Given] = {}
    spark: dict[str, _Given] = {}
    unknown: list[str] = []
    for name, value in [*_of_file(config), *_of_environment(environ), *_of_command_line(overrides)]:
        if name.startswith("spark."):
            spark[name] = value
        elif name == "spark" and isinstance(value.value, Mapping):
            spark |= {str(key): _Given(item, value.source) for key, item in value.value.items()}
        elif name in OPTIONS:
            given[name] = value
        else:
            unknown.append(f'unknown option "{name}" {value.source}{_nearest(name)}')
    if unknown:
        raise SettingsError("; ".join(unknown))
    copied = [
        f"the value of {name} {item.source} is a mask: replace it by the value itself" for name, item in spark.items() if item.value == MASK
    ]
    if copied:
        raise SettingsError("; ".join(copied))
    values: dict[str, object] = {name: item.value for name, item in given.items()}
    if spark:
        values.setdefault("spark", {name: item.value for name, item in spark.items()})
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        problems = dict.fromkeys(_in_words(detail, given | spark) for detail in error.errors())
        raise SettingsError("; ".join(problems)) from error


@dataclass(frozen=True, slots=True)
class _Given:
    """A value, and its source in words."""

    value: object
    source: str


def _of_file(path: Path | None) -> Iterator[tuple[str, _Given]]:
    if path is None:
        return
    import yaml  # here and below: a command without a file needs none of it

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise SettingsError(f"{path} is not YAML{_place(error)}") from None  # not the text itself: it may contain a secret
    if not isinstance(content, Mapping | None):
        raise SettingsError(f"{path} is not a mapping of options to values")
    for name, value in (content or {}).items():
        for option, item in _spread(str(name), value):
            yield option, _Given(item, f"in {path}")


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return f": see line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _spread(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield ``export: {topics: x}`` as ``export.topics: x``."""
    if isinstance(value, Mapping) and any(option.startswith(f"{name}.") for option in OPTIONS):
        for inner, item in value.items():
            yield f"{name}.{inner}", item
    else:
        yield name, value


def _of_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, _Given]]:
    for variable, value in sorted(environ.items()):
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name != variable and not _SERVICE_LINK.fullmatch(f"{name}={value}"):
            option = _VARIABLES.get(name.lower(), name.lower())
            yield option, _Given(_mapping(value) if option in _MAPPINGS else value, f"in the environment ({variable})")


def _mapping(written: str) -> object:
    """Parse a mapping from a text. If it is no YAML mapping, it stays text, which `Settings` refuses."""
    import yaml

    try:
        return yaml.safe_load(written)
    except (yaml.YAMLError, ValueError):
        return written


def _of_command_line(overrides: Mapping[str, object]) -> Iterator[tuple[str, _Given]]:
    for name, value in overrides.items():
        yield name, _Given(_mapping(value) if name in _MAPPINGS and isinstance(value, str) else value, "on the command line")


def _nearest(name: str) -> str:
    near = difflib.get_close_matches(name, OPTIONS, n=1)
    return f', did you mean "{near[0]}"?' if near else ": `segtail config` shows all"


def _in_words(detail: ErrorDetails, given: Mapping[str, _Given]) -> str:
    name, *inner = (str(part) for part in detail["loc"])
    item = given[inner[0]] if name == "spark" and inner else given[name]
    if isinstance(why := detail.get("ctx", {}).get("error"), SameCheckpointError):
        return f"{name}: {why} {item.source}"
    if name == "spark":  # any of its values may be a secret
        shown = f"{{{inner[0]}: ...}}" if inner else "something else"
    else:
        value = masked(name, item.value)
        shown = f'"{plain(value)}"' if isinstance(value, str) else _flow(value)
    return f"{name} takes {OPTIONS[name].form.accepts}, not {shown} {item.source}"


def masked(name: str, value: object) -> object:
    """The value of an option, or of a mapping of options: each secret in it is replaced, as its name shows it."""
    if isinstance(value, dict):
        return {key: masked(str(key), item) for key, item in value.items()}
    return MASK if value and (_SECRET.search(name) or (isinstance(value, str) and _SECRET.search(value))) else value


def _flow(value: object) -> str:
    """One line of YAML, without the mark that ends a document of one scalar."""
    import yaml

    return yaml.dump(value, default_flow_style=True, allow_unicode=True, width=1 << 20).removesuffix("...\n").strip()


def render_yaml(settings: Settings) -> str:
    """Write every option with its value and its description, in the format that `load` reads; secrets are masked."""
    import yaml

    blocks = ["# segtail's options. Durations take ms, s, m, h or d, sizes KiB, MiB, GiB or TiB.\n"]
    for option in OPTIONS.values():
        value = option.form.show(getattr(settings, option.attribute))
        if option.name in _MAPPINGS or option.name in ("job", "spark_checkpoints"):  # an address may hold a password
            value = masked(option.name, value)
        comment = "".join(f"# {line}\n" for line in wrap(option.description, 110))
        blocks.append(comment + yaml.safe_dump({option.name: value}, default_flow_style=False, allow_unicode=True, width=1000))
    return "\n".join(blocks)
