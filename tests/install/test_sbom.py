"""What the SBOM says of Spark's jars, without an image."""

import hashlib
import json
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from install.inventory import jars
from install.sbom import bom
from tests.tables import each_row


@pytest.fixture(scope="module")
def spark() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


@pytest.fixture(scope="module")
def components(spark: Path) -> dict[str, dict[str, str]]:
    """Those of an SBOM of nothing but jars, by their purl."""
    made = JsonV1Dot6(bom("segtail", "1", jars(spark))).output_as_string()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(made) is None
    return {each["purl"]: each for each in json.loads(made)["components"]}


def test_every_jar_of_spark_is_one_component(spark: Path, components: dict[str, dict[str, str]]) -> None:
    count = sum(1 for _ in spark.rglob("*.jar"))
    assert (len(components), count > 250) == (count, True)


def test_each_has_a_group_and_a_version_by_which_scanners_know_it(components: dict[str, dict[str, str]]) -> None:
    assert [purl for purl, each in components.items() if not (each.get("group") and each["version"][0].isdigit())] == []


def test_each_has_the_hash_of_its_file(spark: Path, components: dict[str, dict[str, str]]) -> None:
    files = {hashlib.sha256(path.read_bytes()).hexdigest() for path in spark.rglob("*.jar")}
    assert {each["hashes"][0]["content"] for each in components.values()} == files  # type: ignore[index]


def test_two_builds_of_one_version_are_two_components_whatever_the_file_is_called(spark: Path) -> None:
    """PySpark brings a jar of py4j, and py4j another one, with no dash in its file's name and no description in it."""
    own, sparks = Path(sys.prefix) / "share" / "py4j", spark / "jars"
    files = [*own.glob("*.jar"), *sparks.glob("py4j*.jar")]
    made = [each for each in [*jars(own), *jars(sparks)] if each["name"] == "py4j"]
    found = json.loads(JsonV1Dot6(bom("segtail", "1", made)).output_as_string())["components"]

    assert len(files) == 2
    assert {each["hashes"][0]["content"] for each in found} == {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    assert len({each["bom-ref"] for each in found}) == 2
    assert {each["purl"].partition("@")[0] for each in found} == {"pkg:maven/net.sf.py4j/py4j"}
    assert len({each["version"] for each in found}) == 1


@each_row(
    "beginning",
    [
        pytest.param("pkg:maven/org.apache.logging.log4j/log4j-core@", id="it says what it is"),
        pytest.param("pkg:maven/org.apache.spark/spark-core_2.13@", id="others are packed into it"),
        pytest.param("pkg:maven/org.scala-lang/scala-library@", id="only its file has a name"),
        pytest.param("pkg:maven/com.github.luben/zstd-jni@1.5.7-7?type=jar", id="a version with a dash"),
        pytest.param("pkg:maven/io.netty/netty-transport-native-epoll@4.2.13.Final?classifier=linux-x86_64&type=jar", id="for a machine"),
        pytest.param("pkg:maven/com.google.guava/guava@33.6.0-jre?type=jar", id="what it was built for"),
    ],
)
def test_a_jar_is_called_as_maven_does(beginning: str, components: dict[str, dict[str, str]]) -> None:
    assert any(purl.startswith(beginning) for purl in components), [purl for purl in components if beginning.split("/")[2][:9] in purl]
