"""The Python of Spark's processes on this host: the one of this process, with the path that this process has.

Spark puts a zip with PySpark, and one of its jars, first on the path of each Python that it starts. A zip has no compiled modules, so each
of a job's six daemons and workers would compile whatever it imports: half a second of CPU and 15 MB each. A script around Python takes both
off the path again, so that PySpark is imported from where it is installed.
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

import py4j
import pyspark

_SCRIPT = """\
#!/bin/sh
set -f
IFS=:
kept=
for each in $PYTHONPATH; do
  case $each in
    "$SPARK_HOME"/python/lib/*.zip | "$SPARK_HOME"/jars/*.jar) ;;
    *) kept="$kept${kept:+:}$each" ;;
  esac
done
export PYTHONPATH="$kept"
exec @PYTHON@ "$@"
"""


def write(python: str, directory: Path, modules: Iterable[ModuleType] = (pyspark, py4j)) -> str:
    """Write the script; returns the command to start Python by.

    That is ``python`` itself where the script would not help, because this process has its own modules from a zip, or cannot be executed.

    Args:
        directory: one for this user alone.
        modules: those that Spark has in zips.
    """
    if not all(Path(str(each.__file__)).is_file() for each in modules):
        return python
    script = directory / "python"
    script.write_text(_SCRIPT.replace("@PYTHON@", shlex.quote(python)))
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else python  # not on a file system without execution
