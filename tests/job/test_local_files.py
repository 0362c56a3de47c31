"""The file system that checkpoints are written with, in a JVM with Spark."""

import stat
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from streaming.spark.job import local_files

pytestmark = pytest.mark.spark


@pytest.fixture
def gateway(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm


@pytest.fixture
def files(spark: SparkSession, gateway: Any) -> Any:
    """Hadoop's view of local files, by the class that was compiled when the session began."""
    name = spark.sparkContext._jsc.hadoopConfiguration().get("fs.AbstractFileSystem.file.impl")
    assert name == "segtail.LocalFiles"
    return gateway.org.apache.hadoop.fs.FileContext.getFileContext(gateway.java.net.URI("file:///"), _conf(gateway, name))


def _conf(gateway: Any, name: str) -> Any:
    conf = gateway.org.apache.hadoop.conf.Configuration()
    conf.set("fs.AbstractFileSystem.file.impl", name)
    return conf


def path(gateway: Any, file: Path) -> Any:
    return gateway.org.apache.hadoop.fs.Path(file.as_uri())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755, 0o777])
def test_a_file_gets_the_mode_that_is_asked_for(gateway: Any, files: Any, tmp_path: Path, mode: int) -> None:
    made = tmp_path / "file"
    made.touch()
    files.setPermission(path(gateway, made), gateway.org.apache.hadoop.fs.permission.FsPermission(str(oct(mode)[2:])))
    assert stat.S_IMODE(made.stat().st_mode) == mode


def test_what_it_reports_files_and_links_is_what_hadoops_own_does(gateway: Any, files: Any, tmp_path: Path) -> None:
    own = gateway.org.apache.hadoop.fs.FileContext.getFileContext(gateway.java.net.URI("file:///"), _conf(gateway, local_files.FALLBACK))
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"12345")
    link.symlink_to(file)
    for each in (tmp_path, file, link):
        found, expected = (view.getFileLinkStatus(path(gateway, each)) for view in (files, own))
        for name in ("getLen", "isDirectory", "isSymlink", "getModificationTime"):
            assert getattr(found, name)() == getattr(expected, name)()
        assert found.getPath().toString() == expected.getPath().toString()
    for view in (files, own):
        with pytest.raises(Py4JJavaError, match="FileNotFoundException"):
            view.getFileLinkStatus(path(gateway, tmp_path / "nothing"))


def test_a_rename_does_not_replace_a_file_unless_it_is_asked_to(gateway: Any, files: Any, tmp_path: Path) -> None:
    """Spark commits a micro-batch so; two jobs must not both succeed."""
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").write_text("b")
    options = gateway.org.apache.hadoop.fs.Options.Rename
    some = gateway.java.lang.reflect.Array.newInstance(options.NONE.getClass(), 1)
    some[0] = options.NONE
    with pytest.raises(Py4JJavaError, match="FileAlreadyExists"):
        files.rename(path(gateway, tmp_path / "a"), path(gateway, tmp_path / "b"), some)
    some[0] = options.OVERWRITE
    files.rename(path(gateway, tmp_path / "a"), path(gateway, tmp_path / "b"), some)
    assert (tmp_path / "b").read_text() == "a"
