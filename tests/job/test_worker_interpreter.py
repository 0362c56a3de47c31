"""The Python that Spark starts: it imports what this process imports, whatever Spark puts before that on its path."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pyspark
import pytest

from streaming.spark.job.spark import write_interpreter

PATH = "import sys; print(*sys.path, sep='\\n')"


def module_of(path: Path) -> ModuleType:
    made = ModuleType("some")
    made.__file__ = str(path)
    return made


def test_the_zips_and_jars_of_spark_are_off_the_path_and_what_a_user_put_there_is_on_it(tmp_path: Path) -> None:
    home, users = tmp_path / "spark home", tmp_path / "users"
    spark = [home / "python/lib/pyspark.zip", home / "python/lib/py4j-0.10-src.zip", home / "jars/spark-core.jar"]
    kept = [home / "python", users / "a*", users / "b.zip"]
    environ = {**os.environ, "SPARK_HOME": str(home), "PYTHONPATH": os.pathsep.join(map(str, [*spark, *kept]))}
    command = [write_interpreter(sys.executable, tmp_path), "-P", "-c", PATH]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[: len(kept)] == [str(path) for path in kept]
    assert not set(map(str, spark)) & set(done.stdout.splitlines())


def test_pyspark_comes_from_where_this_process_has_it(tmp_path: Path) -> None:
    of_spark = tmp_path / "home/python/lib/pyspark.zip"
    of_spark.parent.mkdir(parents=True)
    with zipfile.ZipFile(of_spark, "w") as packed:
        packed.writestr("pyspark/__init__.py", "raise AssertionError('of the zip')")
    environ = {**os.environ, "SPARK_HOME": str(tmp_path / "home"), "PYTHONPATH": str(of_spark)}
    command = [write_interpreter(sys.executable, tmp_path), "-c", "import pyspark; print(pyspark.__file__)"]
    assert subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout.strip() == pyspark.__file__


def test_a_user_who_has_pyspark_from_a_zip_alone_keeps_it(tmp_path: Path) -> None:
    assert write_interpreter(sys.executable, tmp_path, [pyspark, module_of(tmp_path / "pyspark.zip/pyspark/__init__.py")]) == sys.executable


def test_where_no_script_may_be_executed_spark_starts_python_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.X_OK)
    assert write_interpreter(sys.executable, tmp_path) == sys.executable
