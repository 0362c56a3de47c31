"""Every world that is replayed was recorded by the script that makes it now, and all of them together are small."""

import json
import shutil
from pathlib import Path

import pytest

from tests.recorded import script
from tests.recorded.archive import DamagedError
from tests.recorded.recordings import DATA, MOST_BYTES, WORLDS, Provenance, archive, module, provenance, provenance_file, stale

RECORDINGS = [(world, version) for world, versions in WORLDS.items() for version in versions]


@pytest.mark.parametrize(("world", "version"), RECORDINGS)
def test_it_is_there_whole_and_made_by_the_script_that_would_make_it_now(world: str, version: str) -> None:
    reason = stale(world, version)
    assert reason is None, reason


def test_there_are_no_others_and_together_they_are_small() -> None:
    files = {path for each in RECORDINGS for path in (archive(*each), provenance_file(*each))}
    assert {*DATA.iterdir()} == files
    assert sum(path.stat().st_size for path in files) < MOST_BYTES


@pytest.mark.parametrize(("world", "version"), RECORDINGS)
def test_it_says_where_it_comes_from(world: str, version: str) -> None:
    reported = provenance(world, version)
    assert (reported.world, reported.kafka, reported.bytes) == (world, version, archive(world, version).stat().st_size)
    assert reported.recorded.endswith("+00:00")
    assert reported.asked


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a world, what it is made by, and what that imports."""
    for name, content in {
        "tests/recorded/worlds/pond.py": "from tests.broker import fish\nfrom tests.broker.lab import Lab\nimport json\n",
        "tests/broker/fish.py": "from streaming.common.units import KIB\nfrom tests.limits import SECONDS\n",
        "tests/broker/lab.py": 'SOURCES = "java"\n',
        "tests/broker/java/Lab.java": "class Lab {}\n",
        "tests/broker/kafka.py": "_SMALL = {}\n\n\ndef _properties():\n    return _SMALL\n\n\ndef start():\n    return 1\n",
        "tests/limits.py": "SECONDS = 600\n",
        "streaming/common/units.py": "KIB = 1024\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path


def digest(tree: Path) -> dict[str, str]:
    return script.digests(module("pond"), tree)


@pytest.mark.parametrize(
    "name", ["tests/recorded/worlds/pond.py", "tests/broker/fish.py", "tests/broker/lab.py", "tests/broker/java/Lab.java"]
)
def test_whatever_a_script_uses_counts(name: str, tree: Path) -> None:
    before = digest(tree)
    (tree / name).write_text((tree / name).read_text() + "MORE = 1\n")
    assert digest(tree) != before


def test_of_the_code_that_starts_brokers_only_their_configuration_counts(tree: Path) -> None:
    made = tree / "tests/recorded/worlds/pond.py"
    made.write_text(f"{made.read_text()}from tests.broker.kafka import Kafka\n")
    before, kafka = digest(tree), tree / "tests/broker/kafka.py"
    kafka.write_text(kafka.read_text().replace("return 1", "return 2"))
    assert digest(tree) == before
    kafka.write_text(kafka.read_text().replace("_SMALL = {}", '_SMALL = {"num.io.threads": 1}'))
    assert digest(tree) != before
    kafka.write_text(kafka.read_text().replace("_SMALL = ", "_TINY = "))
    with pytest.raises(LookupError, match=r"kafka\.py has no _SMALL any more"):
        digest(tree)


def test_what_changes_no_data_does_not_count(tree: Path) -> None:
    before = digest(tree)
    (tree / "tests/limits.py").write_text("SECONDS = 1200\n")
    (tree / "streaming/common/units.py").write_text("KIB = 1000\n")
    (tree / "tests/broker/bird.py").write_text("import tests.broker.fish\n")
    assert digest(tree) == before


def test_where_a_name_of_the_product_is_declared_does_not_count_and_which_it_is_does(tree: Path) -> None:
    made = tree / "tests/recorded/worlds/pond.py"
    source = made.read_text()
    made.write_text(f"from streaming.common.units import (\n    KIB,\n)\n{source}")
    before = digest(tree)
    made.write_text(f"from streaming.sizes import KIB\n{source}")
    assert digest(tree) == before
    made.write_text(f"from streaming.sizes import MIB\n{source}")
    assert digest(tree) != before


@pytest.fixture
def data(tree: Path) -> Path:
    """The recordings of that checkout: one of the pond."""
    made = tree / "data"
    made.mkdir()
    shutil.copyfile(archive(*RECORDINGS[0]), archive("pond", "9.9.9", made))
    reported = json.loads(provenance_file(*RECORDINGS[0]).read_bytes()) | {"world": "pond", "kafka": "9.9.9", "script": digest(tree)}
    provenance_file("pond", "9.9.9", made).write_text(json.dumps(reported))
    return made


def test_a_script_that_was_changed_asks_for_a_new_recording_by_its_command(tree: Path, data: Path) -> None:
    assert stale("pond", "9.9.9", data, tree) is None
    (tree / "tests/broker/fish.py").write_text("TROUT = 1\n")
    reason = stale("pond", "9.9.9", data, tree) or ""
    assert reason == (
        "tests/broker/fish.py changed since pond was recorded on Kafka 9.9.9; this makes it from a live Kafka: make record ONLY=pond"
    )


@pytest.mark.parametrize("missing", [archive, provenance_file])
def test_a_recording_that_is_not_there_is_asked_for_by_its_command(missing, tree: Path, data: Path) -> None:  # type: ignore[no-untyped-def]
    missing("pond", "9.9.9", data).unlink()
    with pytest.raises(DamagedError, match=r"there is no recording of pond on Kafka 9\.9\.9; .* make record ONLY=pond"):
        provenance("pond", "9.9.9", data)
    assert "make record ONLY=pond" in (stale("pond", "9.9.9", data, tree) or "")


def test_an_archive_that_is_not_as_it_was_recorded_is_named(tree: Path, data: Path) -> None:
    packed = archive("pond", "9.9.9", data)
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 1
    packed.write_bytes(content)
    with pytest.raises(DamagedError, match=r"pond-9\.9\.9\.tar\.zst is not the archive that pond-9\.9\.9\.json describes"):
        provenance("pond", "9.9.9", data)


def test_what_is_known_of_a_recording_has_a_name_for_each_field() -> None:
    assert {*json.loads(provenance_file(*RECORDINGS[0]).read_bytes())} == {*Provenance.__slots__}
