"""Checkpoints of other queries, as people write them."""

from pathlib import Path

import pytest
import yaml

from streaming.common.query_checkpoints import Isolation, QueryCheckpoint, parse_all, show_all
from streaming.errors import SettingsError
from streaming.terminal.configuration import load, render_yaml
from tests.tables import each_row

PLAIN = QueryCheckpoint("a", "s3a://b/c")
KNOWN = QueryCheckpoint("a", "s3a://b/c", Isolation.READ_COMMITTED)


@each_row(
    ("written", "meant"),
    [
        ("a=s3a://b/c", (PLAIN,)),
        (" a = s3a://b/c ,", (PLAIN,)),
        ("a=s3a://b/c;isolation=read_committed,d=/e=f", (KNOWN, QueryCheckpoint("d", "/e=f"))),
        (["a=s3a://b/c"], (PLAIN,)),
        ({"a": "s3a://b/c"}, (PLAIN,)),
        ({"a": {"uri": "s3a://b/c", "isolation": "read_committed"}}, (KNOWN,)),
        ({"a": {"uri": "s3a://b/c"}}, (PLAIN,)),
        ("", ()),
        ({}, ()),
    ],
)
def test_what_is_written(written: object, meant: tuple[QueryCheckpoint, ...]) -> None:
    assert parse_all(written) == meant
    assert parse_all(show_all(meant)) == meant


@each_row(
    "written",
    ["a", "=b", "a=", "a=b;c", "a=b;isolation=x", "a=b,a=c", "a=/b,c=/b/", "a=file:///b,c=/b", "a=s3a://b/c,d=s3a://b/c/", {"a": 3},
     {"a": {"isolation": "read_committed"}}, {"a": {"uri": "b", "more": 1}}, ["a=b", 3], {"a\n": "b"}, {"a" * 101: "b"}],
)  # fmt: skip
def test_what_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_all(written)


@each_row(
    ("uri", "local"),
    [
        ("/a/b", Path("/a/b")),
        ("a/b", Path("a/b")),
        ("file:///a/b%20c", Path("/a/b c")),
        ("file:/a/b", Path("/a/b")),
        ("FILE://localhost/a", Path("/a")),
        ("file://host/a", None),
        ("s3a://b/c", None),
        ("hdfs:///c", None),
        ("abfss://c@a.dfs.core.windows.net/x", None),
    ],
)
def test_which_are_of_this_machine(uri: str, local: Path | None) -> None:
    assert QueryCheckpoint("a", uri).local == local


def test_they_are_a_setting_of_every_source(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("spark_checkpoints:\n  a:\n    uri: s3a://b/c\n    isolation: read_committed\n")
    text = "a=s3a://b/c;isolation=read_committed"
    for settings in (
        load(tmp_path / "c.yaml", {}, {}),
        load(None, {"SEGTAIL_SPARK_CHECKPOINTS": text}, {}),
        load(None, {}, {"spark_checkpoints": text}),
    ):
        assert settings.spark_checkpoints == (KNOWN,)
        assert parse_all(yaml.safe_load(render_yaml(settings))["spark_checkpoints"]) == (KNOWN,)


def test_a_password_in_a_uri_is_not_shown() -> None:
    given = QueryCheckpoint("a", "s3a://key:hush@b/c")
    assert given.shown == "s3a://***@b/c"
    assert "hush" not in render_yaml(load(None, {}, {"spark_checkpoints": "a=s3a://key:hush@b/c"}))
    assert QueryCheckpoint("a", "abfss://c@a.dfs/x").shown == "abfss://c@a.dfs/x"


def test_two_names_for_one_checkpoint_are_an_error_that_names_both() -> None:
    with pytest.raises(SettingsError, match=r"spark_checkpoints.*a and b are two names of one checkpoint, /x/"):
        load(None, {}, {"spark_checkpoints": "a=/x,b=/x/"})
