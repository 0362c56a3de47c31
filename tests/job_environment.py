"""What a job that a test starts has in its environment: patience with Python workers, and the archive of its JVM's classes."""

from collections.abc import Sequence

import yaml

from tests import jvm_archive
from tests.jvm_archive import Archive

PATIENT = {"spark.python.authenticate.socketTimeout": "600s"}
"""PySpark gives a worker 15 s to be answered, which are over on a machine that starts many; its 10 s for a worker to call are fixed."""


def of_command(arguments: Sequence[str]) -> dict[str, str]:
    """Of a `segtail` with these arguments, which may be no job."""
    if arguments[0] not in ("run", "demo"):
        return {}
    return of_archive(None if "--master" in arguments else jvm_archive.found())


def of_archive(archive: Archive | None) -> dict[str, str]:
    """Of a job whose JVM has this archive."""
    if archive is None:
        return _options(PATIENT)
    return _options(PATIENT | dict(archive.spark_options)) | {"SPARK_SUBMIT_OPTS": archive.java_option}


def _options(options: dict[str, str]) -> dict[str, str]:
    return {"SEGTAIL_SPARK": yaml.safe_dump(options, default_flow_style=True, width=1_000).strip()}
