"""Secrets among options: what prints the configuration, complains about it, or shows the words of a process, does not show them."""

from pathlib import Path

import pytest
import yaml

from helm.entrypoint import command
from streaming.common.settings import Settings
from streaming.errors import SettingsError
from streaming.terminal.cli import run
from streaming.terminal.configuration import MASK, load, masked
from tests.commands import run_command
from tests.tables import each_row

SECRET = "hunter2"
NAMES = [
    "spark.ssl.keyPassword",
    "spark.ssl.keyStorePassword",
    "spark.ssl.trustStorePassword",
    "spark.authenticate.secret",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.s3a.session.token",
    "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
    "spark.hadoop.fs.s3a.encryption.key",
    "spark.kubernetes.authenticate.submission.oauthToken",
    "spark.hadoop.google.cloud.auth.CREDENTIAL.json",
]


def test_config_masks_what_is_a_secret_by_its_name_or_in_its_value(tmp_path: Path) -> None:
    options = dict.fromkeys(NAMES, SECRET) | {
        "spark.driver.extraJavaOptions": f"-Djavax.net.ssl.trustStorePassword={SECRET}",
        "spark.jars.repositories": f"https://me:{SECRET}@example.com/jars",
        "spark.executor.cores": "4",
        "spark.hadoop.fs.s3a.endpoint": "https://example.com:9000",
    }
    config = tmp_path / "segtail.yaml"
    config.write_text(yaml.safe_dump({"spark": options, "topic_config": {"a.*": {"client.password": SECRET, "retention.ms": 5}}}))
    done = run_command("config", "--config", config)
    assert done.returncode == 0
    assert SECRET not in done.stdout + done.stderr
    printed = yaml.safe_load(done.stdout)
    assert {name: value for name, value in printed["spark"].items() if value != MASK} == {
        "spark.executor.cores": "4",
        "spark.hadoop.fs.s3a.endpoint": "https://example.com:9000",
    }
    assert printed["topic_config"] == {"a.*": {"client.password": MASK, "retention.ms": "5"}}


def test_a_mask_that_was_copied_is_no_secret(tmp_path: Path) -> None:
    config = tmp_path / "segtail.yaml"
    config.write_text(yaml.safe_dump({"spark": {"spark.ssl.keyPassword": MASK}}))
    with pytest.raises(SettingsError, match=r"the value of spark\.ssl\.keyPassword in .* is a mask: replace it by the value itself"):
        load(config, {}, {})


@each_row(
    "written",
    [
        f"spark: {SECRET}",
        f"spark: [{SECRET}]",
        f"spark: {{ssl.keyPassword: {SECRET}}}",
        f"spark: {{spark.ssl.keyPassword: [{SECRET}]}}",
        f"spark: {{spark.ssl.keyPassword: {SECRET}}}\nspark",
        f"spark: {{spark.ssl.keyPassword: {SECRET}",
        f"spark: {{spark.ssl.keyPassword: '{SECRET}}}",
        f"spark:\n  spark.ssl.keyPassword: {SECRET}\n bad: 1",
        f"broker_config: {{ssl.key.password: [{SECRET}]}}",
    ],
)
def test_an_error_names_the_property_and_not_its_value(written: str, tmp_path: Path) -> None:
    config = tmp_path / "segtail.yaml"
    config.write_text(written)
    done = run_command("config", "--config", config)
    assert done.returncode != 0
    assert str(config) in done.stderr
    assert SECRET not in done.stdout + done.stderr


@each_row(
    "arguments",
    [
        ["--set", f"spark.ssl.keyPassword:{SECRET}"],
        ["--set", f"spark.ssl.keyPassword {SECRET}"],
    ],
)
def test_a_word_that_is_no_assignment_is_named_without_what_may_be_a_value(arguments: list[str]) -> None:
    done = run_command("config", *arguments)
    assert done.returncode == 2
    assert "spark.ssl.keyPassword is not NAME=VALUE" in done.stderr
    assert SECRET not in done.stderr


def test_a_driver_s_properties_stay_in_their_file(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("".join(f"{name}={SECRET}\n" for name in NAMES) + "spark.master=k8s\\://https\\://host\n")
    environ = {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.8", "SPARK_APPLICATION_ID": "spark-1"}
    words = command(["driver", "--properties-file", str(file), "--class", "c", "local:///main.py", "run"], environ)
    assert SECRET not in " ".join(words)
    assert words[words.index("--spark-properties") + 1] == str(file)


@each_row("content", [None, b"spark.ssl.keyPassword=\\uhunter2"])
def test_a_file_of_properties_that_cannot_be_read_is_named_without_its_content(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    if content is not None:
        file.write_bytes(content)
    done = run_command("run", "--spark-properties", file)
    assert done.returncode == 2
    assert f"{file} cannot be read: " in done.stderr
    assert SECRET not in done.stderr


def test_options_of_a_file_give_way_to_those_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text("spark.executor.cores=4\nspark.executor.memory=[2g]\nother.thing=1\n")
    words = ["--spark-properties", file, "--spark", "spark.executor.cores=8", "--checkpoint", tmp_path, "--log-dirs", tmp_path]
    for given in (words, [*words[2:4], *words[:2], *words[4:]]):
        assert merged(*given) == {"spark.executor.cores": "8", "spark.executor.memory": "[2g]"}


def merged(*words: object) -> dict[str, str]:
    """Spark's options as ``segtail run`` takes them."""
    taken: list[Settings] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "require_spark_extra", lambda _: None)
        patch.setattr(run, "_run", lambda settings, *_: taken.append(settings))
        done = run_command("run", *words)
    assert (done.returncode, done.stderr) == (0, "")
    return dict(taken[0].spark)


@each_row(
    ("name", "value"),
    [
        ("spark.sas", "hunter7"),
        ("spark.hadoop.fs.azure.sas.box.account.blob.core.windows.net", "x"),
        ("spark.hadoop.fs.azure.SAS", "x"),
        ("spark.es.net.http.auth.pwd", "x"),
        ("spark.key.passphrase", "x"),
        ("spark.kafka.basic.auth.user.info", "user:x"),
        ("spark.x.api-key", "x"),
        ("spark.x.apiKey", "x"),
        ("spark.x.shared_key", "x"),
        ("spark.kafka.ssl.keystore.key", "x"),
        ("spark.x.options", "sv=2024&sig=abc"),
        ("spark.x.connection", "Endpoint=sb://x/;SharedAccessKey=x"),
        ("spark.x.pem", "-----BEGIN EC PRIVATE KEY-----x"),
        ("spark.x.jwt", "x"),
    ],
)
def test_a_secret_is_masked_whatever_it_is_called(name: str, value: str) -> None:
    assert masked("spark", {name: value}) == {name: MASK}


def test_what_is_no_secret_stays_as_it_is() -> None:
    plain = {"spark.kafka.sasl.mechanism": "PLAIN", "spark.x.passes": "2", "spark.ssl.keyStore": "/a", "spark.x.design": "y"}
    assert masked("spark", plain) == plain
    plain = {"spark.executor.memory": "2g", "spark.driver.host": "h", "spark.sql.shuffle.partitions": "", "spark.ssl.enabled": "true"}
    assert masked("spark", plain) == plain
