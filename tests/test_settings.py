from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from streaming.common.settings import OPTIONS, Granularity, MetricGroup, Replicas, Settings
from streaming.common.start_from import StartFrom
from streaming.common.units import Address
from streaming.errors import SettingsError
from streaming.terminal.configuration import load, render_yaml


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "segtail.yaml"


def test_without_any_source_every_option_has_its_default() -> None:
    assert load(None, {}, {}) == Settings()


def test_the_command_line_goes_before_the_environment_before_the_file(config: Path) -> None:
    config.write_text("late_limit: 1\nseries_limit: 1\nproducers_limit: 1\n")
    environ = {"SEGTAIL_LATE_LIMIT": "2", "SEGTAIL_SERIES_LIMIT": "2"}
    settings = load(config, environ, {"late_limit": "3"})
    assert (settings.late_limit, settings.series_limit, settings.producers_limit) == (3, 2, 1)


@pytest.mark.parametrize(
    ("name", "text", "attribute", "value"),
    [
        ("log_dirs", "/var/a,/var/b", "log_dirs", (Path("/var/a"), Path("/var/b"))),
        ("from", "earliest", "start_from", StartFrom.EARLIEST),
        ("listen", "[::]:80", "listen", Address("::", 80)),
        ("replicas", "all", "replicas", Replicas.ALL),
        ("trigger", "0s", "trigger", timedelta(0)),
        ("trigger", "auto", "trigger", None),
        ("hanging_after", "15m", "hanging_after", timedelta(minutes=15)),
        ("max_bytes_per_batch", "64MiB", "max_bytes_per_batch", 64 << 20),
        ("max_bytes_per_batch", "1000", "max_bytes_per_batch", 1000),
        ("assume_replicated", "true", "assume_replicated", True),
        ("free_ratio", "0.5", "free_ratio", 0.5),
        (
            "spark",
            "{spark.executor.cores: 2, spark.ui.enabled: false}",
            "spark",
            {"spark.executor.cores": "2", "spark.ui.enabled": "false"},
        ),
    ],
)
def test_an_option_reads_the_same_from_environment_file_and_command_line(
    config: Path, name: str, text: str, attribute: str, value: object
) -> None:
    config.write_text(f"{name}: {text!r}\n" if text.startswith("[") else f"{name}: {text}\n")
    for settings in (load(config, {}, {}), load(None, {f"SEGTAIL_{name.upper()}": text}, {}), load(None, {}, {name: text})):
        assert getattr(settings, attribute) == value


def test_log_dirs_may_be_a_list_in_the_file(config: Path) -> None:
    config.write_text("log_dirs:\n- /var/a\n- /var/b,c\n")
    assert load(config, {}, {}).log_dirs == (Path("/var/a"), Path("/var/b,c"))


def test_spark_options_of_all_sources_are_joined_one_by_one(config: Path) -> None:
    config.write_text("spark: {spark.a: file, spark.b: file, spark.c: file}\n")
    settings = load(config, {"SEGTAIL_SPARK": "{spark.b: env, spark.c: env}"}, {"spark.c": "line"})
    assert settings.spark == {"spark.a": "file", "spark.b": "env", "spark.c": "line"}


def test_an_unknown_option_is_named_with_its_source_and_the_nearest_known_name(config: Path) -> None:
    config.write_text("hanging_afer: 1m\n")
    with pytest.raises(SettingsError) as caught:
        load(config, {"SEGTAIL_TRIGER": "1s"}, {"zzz": "1"})
    assert str(caught.value) == (
        f'unknown option "hanging_afer" in {config}, did you mean "hanging_after"?; '
        'unknown option "triger" in the environment (SEGTAIL_TRIGER), did you mean "trigger"?; '
        'unknown option "zzz" on the command line: `segtail config` shows all'
    )


def test_the_attribute_of_an_option_is_not_another_name_for_it() -> None:
    with pytest.raises(SettingsError, match='unknown option "start_from"'):
        load(None, {}, {"start_from": "latest"})


def test_other_programs_variables_are_none_of_our_business() -> None:
    assert load(None, {"HOME": "/", "MYSEGTAIL_X": "1", "SEGTAILX": "1"}, {}) == Settings()


def test_the_variables_that_kubernetes_sets_for_a_service_are_no_options() -> None:
    links = {
        "SEGTAIL_SERVICE_HOST": "10.0.0.1",
        "SEGTAIL_SERVICE_PORT_METRICS": "9712",
        "SEGTAIL_PORT": "tcp://10.0.0.1:9712",
        "SEGTAIL_AGENT_PORT_9713_TCP_ADDR": "10.0.0.2",
    }
    assert load(None, links, {}) == Settings()
    with pytest.raises(SettingsError, match='unknown option "port"'):
        load(None, {"SEGTAIL_PORT": "9712"}, {})


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("late_after: 15 minutes", 'late_after takes a duration such as 0s, 500ms, 15m, 24h or 7d, not "15 minutes" in '),
        ("late_after: 60", "late_after takes a duration such as 0s, 500ms, 15m, 24h or 7d, not 60 in "),
        ("stale_after: 0s", 'stale_after takes a duration such as 0s, 500ms, 15m, 24h or 7d, above zero, not "0s" in '),
        ("late_limit: true", "late_limit takes a whole number, 0 or more, not true in "),
        ("late_limit: -1", "late_limit takes a whole number, 0 or more, not -1 in "),
        ("free_ratio: 15", "free_ratio takes a number above 0, at most 1, not 15 in "),
        ("state_shards: 5000", "state_shards takes auto or a whole number from 1 to 4096, not 5000 in "),
        ("state_shards: 0", "state_shards takes auto or a whole number from 1 to 4096, not 0 in "),
        ("state_shards: -4", "state_shards takes auto or a whole number from 1 to 4096, not -4 in "),
        ("state_shards: true", "state_shards takes auto or a whole number from 1 to 4096, not true in "),
        ("state_shards: many", 'state_shards takes auto or a whole number from 1 to 4096, not "many" in '),
        ("assume_replicated: 1", "assume_replicated takes true or false, not 1 in "),
        ("read_rate: 1GB", 'read_rate takes a size such as 65536, 512KiB, 128MiB or 1GiB, not "1GB" in '),
        ("from: beginning", 'from takes one of earliest, active, latest, not "beginning" in '),
        ("from:", "from takes one of earliest, active, latest, not null in "),
        ("listen: 9712", "listen takes HOST:PORT, not 9712 in "),
        ("log_dirs: [1, 2]", "log_dirs takes directories between commas, or a list of them, not [1, 2] in "),
        ("checkpoint: ''", 'checkpoint takes a directory, not "" in '),
        (
            "spark: {executor.cores: 2}",
            "spark takes a mapping of Spark's own option names (spark.…) to values, not {executor.cores: ...} in ",
        ),
        ("spark: 2", "spark takes a mapping of Spark's own option names (spark.…) to values, not something else in "),
    ],
)
def test_a_bad_value_is_named_with_its_source_and_what_is_accepted(config: Path, written: str, message: str) -> None:
    config.write_text(written)
    with pytest.raises(SettingsError) as caught:
        load(config, {}, {})
    assert str(caught.value) == f"{message}{config}"


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"a: [", "is not YAML"), (b"a: 2026-13-45", "is not YAML"), (b"\xff\xfe\xfa", "is not YAML"), (b"- a\n", "is not a mapping")],
)
def test_a_file_that_is_no_configuration_is_named(config: Path, content: bytes, message: str) -> None:
    config.write_bytes(content)
    with pytest.raises(SettingsError, match=message) as caught:
        load(config, {}, {})
    assert str(config) in str(caught.value)


def test_a_file_that_is_not_there_is_named(config: Path) -> None:
    with pytest.raises(SettingsError, match="No such file") as caught:
        load(config, {}, {})
    assert str(config) in str(caught.value)


def test_options_with_a_dot_are_written_flat_nested_or_as_variables_without_it(config: Path) -> None:
    config.write_text("export:\n  topics: a.*\n  groups: [offsets]\nexport.exclude: b\n")
    settings = load(config, {"SEGTAIL_EXPORT_GRANULARITY": "topic"}, {"export.exclude": "c"})
    assert settings.export_topics.fullmatch("ab")
    assert settings.export_exclude.pattern == "c"
    assert (settings.export_granularity, settings.export_groups) == (Granularity.TOPIC, (MetricGroup.OFFSETS,))
    assert load(None, {"SEGTAIL_EXPORT_GROUPS": "offsets, retention"}, {}).export_groups == (MetricGroup.OFFSETS, MetricGroup.RETENTION)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("export: {topic: a}", 'unknown option "export.topic" in .*, did you mean "export.topics"'),
        ("export: {topics: '('}", r'export.topics takes a regular expression, not "\(" in'),
        ("export: {groups: [all]}", "export.groups takes some of throughput, offsets, transactions, retention, consumers, not "),
        ("export: topic", 'unknown option "export" in'),
    ],
)
def test_an_option_with_a_dot_that_is_not_understood_is_named(config: Path, written: str, message: str) -> None:
    config.write_text(written)
    with pytest.raises(SettingsError, match=message):
        load(config, {}, {})


def test_an_empty_file_changes_nothing(config: Path) -> None:
    config.write_text("# all by default\n")
    assert load(config, {}, {}) == Settings()


_YAML_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.dates(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*OPTIONS, "spark.x", "other"]), _YAML_VALUES, max_size=4), st.text(), st.sampled_from([*OPTIONS]))
def test_whatever_is_written_gives_settings_or_an_error_for_people(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, object], text: str, name: str
) -> None:
    path = tmp_path_factory.mktemp("any") / "any.yaml"
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    problem = ""
    try:
        load(path, {f"SEGTAIL_{name.upper()}": text}, {})
    except SettingsError as error:
        problem = str(error)
    assert problem == "" or str(path) in problem or f"(SEGTAIL_{name.upper()})" in problem


def test_what_is_rendered_reads_back_the_same(config: Path) -> None:
    written = Settings(
        log_dirs=(Path("/var/a"), Path("/var/b: c")),
        start_from=StartFrom.EARLIEST,
        listen=Address("::1", 1),
        replicas=Replicas.ALL,
        stale_after=timedelta(milliseconds=1500),
        max_bytes_per_batch=1 << 20,
        assume_replicated=True,
        spark={"spark.a": "true", "spark.b": "2"},
        master="spark://h:1",
    )
    config.write_text(render_yaml(written))
    assert load(config, {}, {}) == written


def test_the_rendered_file_holds_every_option_behind_its_description() -> None:
    rendered = render_yaml(Settings())
    assert list(yaml.safe_load(rendered)) == list(OPTIONS)
    for option in OPTIONS.values():
        comment = rendered.split(f"\n{option.name}:")[0].split("\n\n")[-1]
        assert " ".join(line.removeprefix("# ") for line in comment.splitlines()) == option.description
        assert option.description.endswith(".")


def test_settings_do_not_change() -> None:
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.late_limit = 1  # type: ignore[misc]
