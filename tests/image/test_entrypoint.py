"""What the image's entry point makes of its arguments, without the image."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helm.entrypoint import SEGTAIL, SIDECAR, command, read_properties
from tests.tables import each_row

EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@job:7078",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "segtail-exec-7",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
PROPERTIES = """\
#Java properties built from Kubernetes config map
#Fri Nov 20 08:00:00 UTC 2026
spark.master=k8s\\://https\\://kubernetes.default.svc\\:443
spark.submit.deployMode=cluster
spark.executor.extraJavaOptions=-Da\\=b
spark.kubernetes.driver.pod.name=segtail-driver
"""


def test_segtail_is_run_with_its_arguments() -> None:
    assert command(["agent", "--log-dirs", "/a b"], {}) == [SEGTAIL, "agent", "--log-dirs", "/a b"]
    assert command([], {}) == [SEGTAIL]


def test_an_executor_is_given_what_its_variables_say() -> None:
    java, *rest = command(["executor"], EXECUTOR)

    assert java == "java"
    assert rest[:3] == ["-Xms1024m", "-Xmx1024m", "-cp"]
    assert rest[3].endswith("/pyspark/jars/*")
    stated = dict(zip(rest[5::2], rest[6::2], strict=True))
    assert stated["--driver-url"] == EXECUTOR["SPARK_DRIVER_URL"]
    assert stated["--podName"] == "segtail-exec-7"
    assert sorted(stated.values()) == sorted(value for name, value in EXECUTOR.items() if name != "SPARK_EXECUTOR_MEMORY")


def test_options_of_its_jvm_come_in_order_and_whole() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dx{number}=a b" for number in range(12)}

    assert command(["executor"], EXECUTOR | options)[1:13] == [f"-Dx{number}=a b" for number in range(12)]


def test_its_configuration_and_class_path_come_before_spark_s_own() -> None:
    words = command(["executor"], EXECUTOR | {"SPARK_CONF_DIR": "/opt/spark/conf", "SPARK_CLASSPATH": "/jars/a.jar"})

    assert words[words.index("-cp") + 1].startswith("/opt/spark/conf:/jars/a.jar:/")


def test_a_driver_is_segtail_with_the_options_that_spark_submit_wrote(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(PROPERTIES)
    given_to_it = ["driver", "--properties-file", str(file), "--class", "org.apache.spark.deploy.PythonRunner", "local:///main.py"]

    words = command([*given_to_it, "run", "--config=a"], {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.8", "SPARK_APPLICATION_ID": "spark-1"})

    assert words[:5] == [SEGTAIL, "run", "--config=a", "--master", "k8s://https://kubernetes.default.svc:443"]
    assert words[5:7] == ["--spark-properties", str(file)]
    assert words[7::2] == ["--spark"] * 2
    assert set(words[8::2]) == {"spark.driver.bindAddress=10.0.0.8", "spark.app.id=spark-1"}


@each_row("arguments", [[], ["--class", "x"], ["--properties-file", "a", "--class", "b"], ["--a", "b", "--c", "d", "e"]])
def test_a_driver_that_is_given_something_else_says_so(arguments: list[str]) -> None:
    with pytest.raises(SystemExit, match="expected --properties-file FILE"):
        command(["driver", *arguments], {})


def test_a_sidecar_keeps_an_agent_running() -> None:
    assert command(["sidecar", "--log-dirs", "/d"], {}) == [SIDECAR, SEGTAIL, "agent", "--log-dirs", "/d"]


def stored(text: str, *, key: bool) -> str:
    """As java.util.Properties.store writes it."""
    escaped = "".join(f"\\{char}" if char in "\\=:#!" or (key and char == " ") else char for char in text)
    escaped = "".join(char if " " <= char <= "~" else f"\\u{ord(char):04X}" for char in escaped)
    return "\\" + escaped if escaped.startswith(" ") else escaped


TEXT = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))


@given(st.dictionaries(TEXT.filter(bool), TEXT))
def test_properties_are_read_as_java_wrote_them(properties: dict[str, str]) -> None:
    text = "#a comment=x\n" + "".join(f"{stored(key, key=True)}={stored(value, key=False)}\n" for key, value in properties.items())

    assert read_properties(text) == properties
