"""The JVM with Spark that a job starts for itself, with the settings that its query needs, and the Python of its processes."""

import logging
import os
import re
import shlex
import shutil
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import py4j
import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

import streaming
from streaming.common.whole_files import write_whole
from streaming.spark.job import jvm, local_files, worker_daemon
from streaming.spark.job.class_archive import CLASS_PATH, ClassArchive
from streaming.spark.job.jvm import Jvm, SparkError, guard_callbacks
from streaming.spark.query.query import error_text, reason

log = logging.getLogger(__name__)

FIXED = {
    # the state is in RocksDB: transformWithState accepts no other store
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
    "spark.sql.session.timeZone": "UTC",
    "spark.api.mode": "classic",
    "spark.submit.deployMode": "client",
    # A stage begins again if its output was lost with an executor. An agent whose rows it had the first time may not answer then, and the
    # attempt's number does not show this. So the whole query is run again instead, as a new run, to which the agent sends those rows.
    "spark.stage.maxConsecutiveAttempts": "1",
    # with two attempts at one task, an agent may answer one of them and not the other
    "spark.speculation": "false",
}
"""Settings that the query relies on."""

DEFAULTS = {
    # each task adds 40 ms to a micro-batch, whatever it does; the number of tasks is fixed in the checkpoint
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.streaming.noDataProgressEventInterval": "5000",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "1g",
    "spark.python.worker.faulthandler.enabled": "true",
    # executors start Python by `-m`, which would take modules from the current directory
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Spark waits 15 s for a worker to connect: on a busy host Python takes longer to start, and the query would be restarted
    "spark.python.authenticate.socketTimeout": "120s",
    # workers with another environment would need another daemon
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    local_files.OPTION: local_files.FALLBACK,
}
"""Settings that users may change."""

PATIENCE = {"SPARK_AUTH_SOCKET_TIMEOUT": "120"}
"""The same limit for this process, in seconds, which reads it from its environment. Users may change it, too."""

_JVM_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""A small heap needs no parallel collector. For a job of small batches, the second compiler costs more than it saves."""

_HEAP_OPTIONS = "-Xms64m -Xmn48m -XX:MinHeapFreeRatio=30 -XX:MaxHeapFreeRatio=60"
"""The live objects of a local job take some 70 MB. The heap grows up to `spark.driver.memory` if needed, and shrinks again.
With half as much to spare it takes 10 MB less, and collects old objects half as often again where 10,000 logs grow.
"""

_CLASSES = "classes"
"""A directory of the driver's class path. It is empty when the JVM starts."""

_SOCKET_DIRECTORY_CHARACTERS = 61
"""Spark's limit: the path of a socket has at most 107 characters."""

_STOP_SECONDS = 2.0

_JVM_GONE = "Unable to cleanly shutdown Spark JVM"
"""PySpark prints this warning, with a line of its code, where the JVM ended first: killed by segtail or by a supervisor."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)

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


class Spark:
    """One JVM, and from `connect` on its session; a process has only one in its lifetime."""

    def __init__(
        self,
        *,
        master: str,
        options: Mapping[str, str],
        java_home: Path,
        directory: Path,
        debug: bool,
        lock_fd: int,
        data_source: type[DataSource],
        archive: ClassArchive | None = None,
    ) -> None:
        """Start the JVM, and do not wait for it.

        Args:
            options: more options, by Spark's own names; they win over `DEFAULTS`, not over `FIXED`.
            directory: for Spark's scratch files, which are removed at the next start, and for the configuration of its log.
            debug: log warnings and stack traces too.
            lock_fd: is held open until the JVM is gone, which may be after the end of this process.
            archive: of the classes that the JVM loads.
        """
        for name, value in PATIENCE.items():
            os.environ.setdefault(name, value)
        if not debug:
            _hush_py4j()
        conf = SparkConf(loadDefaults=False).setMaster(master).setAppName("segtail")
        scratch = _emptied(directory / "scratch")
        python = write_interpreter(sys.executable, scratch) if is_local(master) else sys.executable
        os.environ["PYSPARK_PYTHON"] = options.get("spark.pyspark.python", python)
        os.environ["PYSPARK_DRIVER_PYTHON"] = python
        for name, value in {
            **DEFAULTS,
            **_directories(directory, scratch, local=is_local(master), debug=debug),
            **options,
            **(archive.options(options, local=is_local(master)) if archive else {}),
            **FIXED,
        }.items():
            conf.set(name, value)
        self._conf, self._scratch, self._data_source = conf, scratch, data_source
        self._local = is_local(master)
        self._compiles = self._local and local_files.OPTION not in options and archive is None
        self._session: SparkSession | None = None
        self._jvm = Jvm(conf, java_home=java_home, scratch=scratch, lock_fd=lock_fd, private=self._local)

    def connect(self) -> None:
        """Wait for the JVM, and make the session.

        Raises:
            SparkError: the JVM did not start, or ended while the session was made.
        """
        conf = self._conf
        try:
            gateway = self._jvm.connect(conf)
            if self._compiles:
                conf.set(local_files.OPTION, local_files.compile_into(gateway.jvm, self._scratch / _CLASSES))
            guard_callbacks(gateway)
            context = SparkContext(conf=conf, gateway=gateway)
            # it would print a stack trace if the JVM ends first, for example when a supervisor ends all processes of a service at once
            setattr(context._accumulatorServer, "handle_error", _broken)  # noqa: B010 - mypy takes the plain assignment for a slip
            self._context: Any = context
            self._gateway: Any = context._jvm
            if not self._local:
                context.addPyFile(str(zip_package(self._scratch)))
            self._session = SparkSession(context)
            self._session.dataSource.register(self._data_source)
        except (Py4JError, OSError) as error:
            why = reason(error)  # as long as the JVM is there to be asked
            self._jvm.kill()
            raise SparkError(f"Spark's JVM ended while Spark was started ({why}), its status is {self.status}: see its messages") from error
        except BaseException:
            self._jvm.kill()
            raise

    @property
    def session(self) -> SparkSession:
        """Spark's session, once it is connected."""
        assert self._session is not None
        return self._session

    @property
    def status(self) -> int | None:
        """The status with which the JVM has ended, None while it runs."""
        return self._jvm.status

    @property
    def class_path(self) -> list[str]:
        """What the JVM has on its class path, in order."""
        return str(self._gateway.java.lang.System.getProperty("java.class.path")).split(os.pathsep)

    def planned_in(self, location: str) -> int:
        """The last micro-batch that was planned with a Spark checkpoint on any Hadoop file system, -1 if none ever was.

        Raises:
            SparkError: it cannot be read.
        """
        try:
            offsets = self._gateway.org.apache.hadoop.fs.Path(f"{location}/offsets")
            files = offsets.getFileSystem(self._context._jsc.hadoopConfiguration())
            names = [str(each.getPath().getName()) for each in files.listStatus(offsets)] if files.exists(offsets) else []
        except Py4JError as error:
            raise SparkError(f"spark_checkpoint {location} cannot be read: {reason(error)}") from error
        return max((int(name) for name in names if name.isdigit()), default=-1)

    @property
    def hadoop(self) -> tuple[Any, Any]:
        """The JVM and its configuration of Hadoop's file systems, for calls from any thread."""
        return self._gateway, self._context._jsc.hadoopConfiguration()

    def hush(self) -> None:
        """The query is being stopped: what the JVM prints from now on is no sign of a crash."""
        self._jvm.ending.set()

    def stop(self) -> None:
        """End the session and the JVM."""
        if self._session is None:
            self._jvm.kill()
            return
        within(_STOP_SECONDS, self._session.stop)
        self._jvm.stop()


def _hush_py4j() -> None:
    """Silence py4j: it logs every broken call with its stack, partly by the root logger. The caller logs what the failure means."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(lambda record: Path(record.pathname).parent.name != "py4j")


def _emptied(scratch: Path) -> Path:
    """An empty directory for this job alone: in a common one, the files of a killed Spark would stay for ever."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700, parents=True)
    (scratch / _CLASSES).mkdir()
    return scratch


def write_interpreter(python: str, directory: Path, modules: Iterable[ModuleType] = (pyspark, py4j)) -> str:
    """Write the script; returns the command to start Python by.

    The Python of Spark's processes on this host: the one of this process, with the path that this process has. Spark puts a zip with
    PySpark, and one of its jars, first on the path of each Python that it starts. A zip has no compiled modules, so each of a job's
    six daemons and workers would compile whatever it imports: half a second of CPU and 15 MB each. A script around Python takes both
    off the path again, so that PySpark is imported from where it is installed.

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


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's own JVM."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def _directories(directory: Path, scratch: Path, *, local: bool, debug: bool) -> dict[str, str]:
    """The options for files and directories that Spark reads and writes."""
    logging_file = directory / "log4j2.properties"
    write_whole(logging_file, jvm.log4j_properties(debug=debug).encode(), lasting=False)
    java_options = f"-Dlog4j2.configurationFile={logging_file.as_uri()}"
    if not local:
        return {"spark.driver.extraJavaOptions": f"{java_options} {_JVM_OPTIONS}", "spark.executor.extraJavaOptions": _JVM_OPTIONS}
    for name, value in {"SPARK_LOCAL_IP": "127.0.0.1", **worker_daemon.ENVIRON}.items():
        os.environ.setdefault(name, value)
    return {
        "spark.driver.extraJavaOptions": f'{java_options} {_JVM_OPTIONS} {_HEAP_OPTIONS} "-Djava.io.tmpdir={scratch}"',
        "spark.python.daemon.module": worker_daemon.__name__,
        # one store and one task for the state: a second one brings nothing on one host
        "spark.sql.shuffle.partitions": "1",
        CLASS_PATH: str(scratch / _CLASSES),
        "spark.local.dir": str(scratch),
        # other users of this host: no port without a secret (the one of the state has none, so it is a socket in a private directory)
        "spark.authenticate": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": _socket_directory(scratch),
        # Hadoop's umask: its file system sets modes, whatever the umask of the process
        "spark.hadoop.fs.permissions.umask-mode": "077",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
    }


def _socket_directory(directory: Path) -> str:
    """A path of a directory that is short enough for a socket in it, and without capitals, while this process lives.

    A worker of PySpark 4.3.0 gets the path of the state's socket in lower case: ``EvalConf.get`` takes every value for a flag.
    """
    path = str(directory)
    if len(path) <= _SOCKET_DIRECTORY_CHARACTERS and path == path.lower():
        return path
    return f"/proc/{os.getpid()}/fd/{os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)}"


def _broken(*_: object) -> None:
    log.debug("a connection of the JVM broke")


def zip_package(directory: Path) -> Path:
    """Write ``segtail-<version>.zip`` with the package ``streaming`` as it runs here, for executors elsewhere.

    It is pure Python: the executors must have the libraries that it needs. The same sources produce the same bytes.
    """
    root = Path(streaming.__file__).parent
    path = directory / f"segtail-{streaming.__version__}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*.py")):
            info = zipfile.ZipInfo(str(file.relative_to(root.parent)), _EARLIEST)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, file.read_bytes())
    return path


def within(seconds: float, action: Callable[[], None]) -> None:
    """Do something that ends something in the JVM, and wait for at most ``seconds``. If the JVM is gone, there is nothing to end."""

    def act() -> None:
        warnings.filterwarnings("ignore", _JVM_GONE, RuntimeWarning)
        try:
            action()
        except (Py4JError, OSError) as error:
            log.debug("the JVM does not answer any more", extra={"error": error_text(error)})

    thread = threading.Thread(target=act, daemon=True, name="stop")
    thread.start()
    thread.join(seconds)
