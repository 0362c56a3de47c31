"""What a job that a test starts has in its environment: patience with Python workers, and the archive of its JVM's classes."""

from collections.abc import Sequence

import yaml

from tests import jvm_archive

PATIENT = {"spark.python.authenticate.socketTimeout": "600s"}
"""PySpark gives a worker 15 s to be answered, which are over on a machine that starts many; its 10 s for a worker to call are fixed."""

PATIENT_OPTIONS = {"SEGTAIL_SPARK": yaml.safe_dump(PATIENT, default_flow_style=True, width=1_000).strip()}


def of_command(arguments: Sequence[str]) -> dict[str, str]:
    """Of a `segtail` with these arguments, which may be no job."""
    if arguments[0] not in ("run", "demo", "warm-up"):
        return {}
    archives = jvm_archive.found()
    return PATIENT_OPTIONS | ({"SEGTAIL_CLASS_ARCHIVES": str(archives)} if archives else {})
