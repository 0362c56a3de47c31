"""Gets the jars of a real Kafka with the Ivy that PySpark brings along: no Maven, no JDK, only a Java runtime."""

import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from streaming.common.java import find
from streaming.errors import JavaError
from tests.broker import class_archive

KAFKA_VERSION = "4.3.1"
"""Of the tools and the Java client, always, and of recorded worlds: 4.4.0 published no tools."""

BROKER_VERSION = "4.4.0"
"""Of the brokers of live tests that do not ask for another one."""

OLDER_VERSION = "3.9.2"
"""The last release before 4.0, for brokers that segtail may be beside."""

_DOWNLOAD_SECONDS = 900

FAST_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""For a JVM that starts often and computes little. Not for one whose speed is measured."""

_TOOLS = """<dependency org="org.apache.kafka" name="kafka-tools" rev="VERSION" conf="run->default"/>
    """

# What a broker and its tools need: Kafka Connect and its web server come along with kafka-tools and are left out.
_KAFKA_MODULE = """\
<ivy-module version="2.0">
  <info organisation="tests" module="kafka"/>
  <configurations><conf name="run"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="VERSION" conf="run->default"/>
    TOOLS<dependency org="org.apache.logging.log4j" name="log4j-slf4j-impl" rev="2.25.4" conf="run->default"/>
    <exclude module="connect-.*" matcher="regexp"/>
    <exclude org="org\\.glassfish\\..*|org\\.eclipse\\.jetty.*" matcher="regexp"/>
  </dependencies>
</ivy-module>
"""

# Eclipse's compiler runs on a Java runtime; javac is in a JDK alone.
_COMPILER_MODULE = """\
<ivy-module version="2.0">
  <info organisation="tests" module="compiler"/>
  <configurations><conf name="run"/></configurations>
  <dependencies>
    <dependency org="org.eclipse.jdt" name="ecj" rev="3.42.0" conf="run->default" transitive="false"/>
  </dependencies>
</ivy-module>
"""

# What Spark needs to read from Kafka itself; PySpark brings the rest. There is not one of each for each version of Spark.
_SPARK_KAFKA_MODULE = """\
<ivy-module version="2.0">
  <info organisation="tests" module="spark-kafka"/>
  <configurations><conf name="run"/></configurations>
  <dependencies>
    <dependency org="org.apache.spark" name="spark-sql-kafka-0-10_2.13" rev="4.2.0" conf="run->default" transitive="false"/>
    <dependency org="org.apache.spark" name="spark-token-provider-kafka-0-10_2.13" rev="4.0.0" conf="run->default" transitive="false"/>
    <dependency org="org.apache.kafka" name="kafka-clients" rev="3.9.2" conf="run->default" transitive="false"/>
    <dependency org="org.apache.commons" name="commons-pool2" rev="2.12.0" conf="run->default" transitive="false"/>
  </dependencies>
</ivy-module>
"""

# What an application of Kafka Streams needs beside Kafka's class path. RocksDB is for stores, and is left out: it has 70 MB.
_STREAMS_MODULE = """\
<ivy-module version="2.0">
  <info organisation="tests" module="streams"/>
  <configurations><conf name="run"/></configurations>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka-streams" rev="VERSION" conf="run->default" transitive="false"/>
  </dependencies>
</ivy-module>
"""

LOG4J = """\
status = error
rootLogger.level = WARN
rootLogger.appenderRef.stderr.ref = STDERR
appender.console.type = Console
appender.console.name = STDERR
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""
"""What a broker and a tool complain of, on standard error."""


class UnavailableError(Exception):
    """A tool that these tests need is not on this machine and cannot be had."""


def cache_dir() -> Path:
    """Where the tests keep what is costly to make, outside the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "segtail-tests"


def archives() -> Path:
    """Where archives of classes lie."""
    return cache_dir() / "class-archives"


@cache
def java() -> str:
    """The `java` that segtail itself would take."""
    try:
        return str(find(os.environ, cache_dir() / "java") / "bin" / "java")
    except JavaError as error:
        raise UnavailableError(str(error)) from error


@cache
def class_path(version: str = KAFKA_VERSION) -> str:
    """Kafka's class path, fetched once a machine."""
    module = _KAFKA_MODULE.replace("TOOLS", "" if version == BROKER_VERSION else _TOOLS).replace("VERSION", version)
    return os.pathsep.join(map(str, _jars(f"kafka-{version}", module)))


@cache
def compiled(sources: Path, *libraries: Path) -> Path:
    """The folder with the compiled classes of a folder of Java that uses Kafka's and these, made anew when a source changes."""
    files = sorted(sources.glob("*.java"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    classes = cache_dir() / "classes" / digest
    if not classes.is_dir():
        (compiler,) = _jars("compiler-3.42.0", _COMPILER_MODULE)
        classes.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=classes.parent) as scratch:  # appears whole or not at all
            staged = Path(scratch, "classes")
            options = ("-17", "-nowarn", "-proc:none", "-cp", os.pathsep.join([class_path(), *map(str, libraries)]), "-d", str(staged))
            subprocess.run([java(), "-jar", str(compiler), *options, *map(str, files)], check=True)
            with suppress(OSError):  # another process was faster
                staged.rename(classes)
    return classes


@cache
def spark_kafka_jars() -> tuple[Path, ...]:
    """The jars of Spark's own Kafka source, fetched once a machine."""
    return _jars("spark-kafka-4.2.0", _SPARK_KAFKA_MODULE)


def spark_environment() -> dict[str, str]:
    """That of a process that starts Spark with these jars."""
    own = {"JAVA_HOME": str(Path(java()).parent.parent), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    return {**os.environ, **own}


@cache
def streams_jar() -> Path:
    """That of Kafka Streams, of the version of the Java client, fetched once a machine."""
    (jar,) = _jars(f"kafka-streams-{KAFKA_VERSION}", _STREAMS_MODULE.replace("VERSION", KAFKA_VERSION))
    return jar


def _jars(name: str, module: str) -> tuple[Path, ...]:
    home = cache_dir() / name
    libs = home / "libs"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side fetch once
        if not libs.is_dir():
            _fetch(libs, module)
    return tuple(sorted(libs.glob("*.jar")))


def java_command(
    main_class: str,
    *arguments: str,
    options: tuple[str, ...] = FAST_START,
    heap_mb: int = 256,
    classes: Path | None = None,
    version: str = KAFKA_VERSION,
    libraries: tuple[Path, ...] = (),
) -> list[str]:
    """A command line that runs a class of Kafka, or one of `classes` that uses Kafka's and those of `libraries`, in a small JVM."""
    log4j = cache_dir() / "log4j2.properties"
    if not log4j.exists():
        log4j.parent.mkdir(parents=True, exist_ok=True)
        log4j.write_text(LOG4J)
    kafka = class_path(version)
    archive = class_archive.options(java(), kafka, archives()) if set(FAST_START) <= set(options) else ()
    jvm = [f"-Xmx{heap_mb}m", f"-Dlog4j2.configurationFile={log4j}", *archive, *options]
    more = (*([classes] if classes else []), *libraries)
    path = os.pathsep.join([kafka, *map(str, more)])  # the archive holds for what begins with Kafka's own path
    return [java(), *jvm, "-cp", path, main_class, *arguments]


def _fetch(libs: Path, wanted: str) -> None:
    """Lets Ivy resolve and download into a folder beside `libs`, which appears only when it is whole."""
    ivy = next(_pyspark_dir().glob("jars/ivy-*.jar"), None)
    if ivy is None:
        raise UnavailableError("PySpark brings no Ivy jar")
    with tempfile.TemporaryDirectory(dir=libs.parent) as scratch:
        staged = Path(scratch, "libs")
        module = Path(scratch, "ivy.xml")
        module.write_text(wanted)
        pattern = f"{staged}/[artifact]-[revision](-[classifier]).[ext]"
        options = f"-error -cache {scratch}/cache -ivy {module} -confs run -retrieve {pattern}".split()
        command = [java(), "-jar", str(ivy), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_DOWNLOAD_SECONDS)
        if done.returncode:
            raise UnavailableError(f"the jars of {libs.parent.name} could not be fetched: ...{(done.stdout + done.stderr).strip()[-300:]}")
        staged.rename(libs)


def _pyspark_dir() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise UnavailableError("PySpark is not installed")
    return Path(spec.origin).parent
