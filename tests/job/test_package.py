"""The package as executors elsewhere get it."""

import subprocess
import sys
from pathlib import Path

from streaming.job.package import zip_package

CODE = """
import sys
sys.path = [sys.argv[1], *(path for path in sys.path if "site-packages" in path or "/lib/python" in path)]
sys.meta_path = [finder for finder in sys.meta_path if "editable" not in repr(finder).lower()]
from streaming.source.datasource import SegtailDataSource
from streaming.query.processor import ShardProcessor
import streaming.client.agent_client
print(streaming.__file__)
"""


def test_source_and_fold_are_imported_from_the_zip_alone(tmp_path: Path) -> None:
    made = zip_package(tmp_path)
    done = subprocess.run([sys.executable, "-I", "-c", CODE, str(made)], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == f"{made}/streaming/__init__.py"


def test_the_same_sources_make_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    assert zip_package(tmp_path).read_bytes() == zip_package(tmp_path / "again").read_bytes()
