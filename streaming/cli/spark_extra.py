"""The extra ``[spark]``: the job and the demo need it, the agent and the commands on log dirs do not."""

import importlib.util

from streaming.errors import UsageError

MODULES = {"google.protobuf": "protobuf", "jinja2": "jinja2", "pandas": "pandas", "pyspark": "pyspark"}
"""What the extra brings: the name by which a module is imported, and that of its distribution."""

INSTALL = "pip install 'kafka-segment-tail[spark]'"


def require_spark_extra(command: str) -> None:
    """Refuse a command that needs the extra where it is not installed.

    Raises:
        UsageError: names what is missing, and the command that installs it.
    """
    missing = [distribution for module, distribution in MODULES.items() if not _is_there(module)]
    if missing:
        needed = ", ".join(missing)
        raise UsageError(
            f"`segtail {command}` runs a Spark job, and of what it needs these are not installed: {needed}. "
            f"Install: {INSTALL}, or in a checkout: pip install '.[spark]'"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module is in is not there
        return False
