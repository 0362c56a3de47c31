"""The extra ``[spark]``: the job and the demo need it, the agent and the commands on log dirs do not."""

import importlib.util
import sys

from streaming import __version__
from streaming.errors import UsageError

MODULES = {"google.protobuf": "protobuf", "pandas": "pandas", "pyspark": "pyspark"}
"""What the extra brings: the name by which a module is imported, and that of its distribution."""

PANDAS_FOR = frozenset({"doctor"})
"""The commands whose own process finds pandas: it looks whether it is there. Of a job's processes, Spark's Python workers use it."""

COMMANDS = frozenset({"demo", "run", "warm-up"})
"""Those that need it."""

INSTALL = f"pip install './kafka_segment_tail-{__version__}-py3-none-any.whl[spark]'"
"""A path: pip takes a name from an index, where this name is free or, worse, another project's."""


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
            f"Install it from the wheel ({INSTALL}), or in a checkout: pip install '.[spark]'"
        )


def _is_there(module: str) -> bool:
    try:
        if module == _NoPandas.NAME:  # it may be left out of this process, and be there all the same
            return any(finder.find_spec(module, None) for finder in sys.meta_path if not isinstance(finder, _NoPandas))
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module is in is not there
        return False


class _NoPandas:
    """Answers an import. (None in `sys.modules` would not do: pyarrow is compiled, and takes it for the module.)"""

    NAME = "pandas"

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Look for nothing.

        Raises:
            ModuleNotFoundError: what is asked for is pandas.
        """
        if name == self.NAME:
            raise ModuleNotFoundError(f"{name} is left out here", name=name)


def leave_out_pandas() -> None:
    """Let this process go on as where pandas is not installed.

    pyarrow imports it, where it is, at the first array that it makes: a quarter of what a command's start takes, and 25 MB, for nothing.
    """
    sys.meta_path.insert(0, _NoPandas())
