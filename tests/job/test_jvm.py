"""How Spark's options reach its JVM."""

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyspark.conf import SparkConf

from streaming.spark.job.jvm import Jvm, properties
from tests.processes import until


def read(text: str) -> dict[str, str]:
    """What `java.util.Properties.load` makes of lines in which everything but letters, digits and a few more is escaped by number."""
    lines = (line.split("=") for line in text.splitlines())
    return {_plain(name): _plain(value) for name, value in lines}


def _plain(escaped: str) -> str:
    assert re.fullmatch(r"(?:[A-Za-z0-9._/,-]|\\u[0-9a-f]{4})*", escaped)
    units = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), escaped)
    return units.encode("utf-16-be", "surrogatepass").decode("utf-16-be")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"]))))
@example({"spark.driver.extraJavaOptions": '-Dx="a b" # !\\\n', "spark.\N{GRINNING FACE}": "k=v: \t"})
def test_options_come_out_of_the_file_as_they_went_in(options: dict[str, str]) -> None:
    assert read(properties(options)) == options


def test_one_that_has_ended_already_can_be_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "spark" / "bin"
    home.mkdir(parents=True)
    (home / "spark-submit").write_text("#!/bin/sh\nexit 7\n")
    (home / "spark-submit").chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(home.parent))
    jvm = Jvm(SparkConf(loadDefaults=False), java_home=tmp_path, scratch=tmp_path, lock_fd=0, private=False)
    until("it has ended", lambda: jvm.status is not None)
    jvm.kill()
    assert jvm.status == 7
    jvm.stop()
