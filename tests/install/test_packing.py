"""What packages are made of, without building one: the licences that they list, and what is missing for one."""

import subprocess
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from install.licences import OWN, Licence, licence, lines, main
from tests.install.built import ROOT, pins


def package(site: Path, name: str, metadata: str, *texts: str) -> Path:
    """Put a package into a folder, with these lines in its METADATA and these files in its .dist-info."""
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\n{metadata}")
    for text in texts:
        (info / text).write_text("...")
    (info / "RECORD").write_text("".join(f"{info.name}/{text},,\n" for text in ("METADATA", *texts)))
    return site


def test_every_package_that_is_packed_names_a_licence_and_brings_its_text() -> None:
    packed = [licence(distribution(name)) for name in pins(ROOT / "requirements-agent.txt")]
    assert [each.name for each in packed if each.package == "rich"] == ["MIT"]


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ("License-Expression: MIT\nLicense: other\n", "MIT"),
        ("License: BSD-3-Clause\nClassifier: License :: OSI Approved :: BSD License\n", "BSD-3-Clause"),
        ("Classifier: License :: OSI Approved :: MIT License\n", "MIT"),
    ],
)
def test_what_a_package_says_of_itself_counts(metadata: str, name: str, tmp_path: Path) -> None:
    (found,) = Distribution.discover(path=[str(package(tmp_path, "lib", metadata, "LICENSE", "other"))])
    listed = licence(found)
    assert (listed.package, listed.version, listed.name) == ("lib", "1.0", name)
    assert [str(text) for text in listed.texts] == ["lib-1.0.dist-info/LICENSE"]


@pytest.mark.parametrize(
    ("metadata", "texts"), [("", ("LICENSE",)), ("License-Expression: MIT\n", ()), ("License: All\n  of the text\n", ("LICENSE",))]
)
def test_a_package_that_somebody_has_to_look_at_ends_the_build(
    metadata: str, texts: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package(tmp_path, "good", "License-Expression: MIT\n", "LICENSE")
    assert main(tmp_path) == 0
    assert "good 1.0: MIT" in capsys.readouterr().out

    assert main(package(tmp_path, "bad", metadata, *texts)) == 2
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "licences: bad 1.0: its METADATA names no licence, or its .dist-info has no text of it\n")


def test_segtail_itself_is_no_package_of_others_and_a_folder_without_any_is_a_mistake(tmp_path: Path, capsys) -> None:
    assert main(package(tmp_path, OWN, "License-Expression: Apache-2.0\n", "LICENSE")) == 2
    assert capsys.readouterr().err == f"licences: there are no packages in {tmp_path}\n"


def test_the_list_has_each_package_once_and_its_texts_below() -> None:
    found = [Licence("b", "2", "MIT", (Path("b-2.dist-info/LICENSE"),)), Licence("A", "1", "Zlib", (Path("A-1.dist-info/COPYING"),))]
    head, *rest = lines(found)
    assert "site-packages" in head
    assert rest == ["A 1: Zlib", "    A-1.dist-info/COPYING", "b 2: MIT", "    b-2.dist-info/LICENSE"]


@pytest.mark.parametrize("kind", ["deb", "rpm"])
def test_without_the_files_to_pack_the_script_names_what_makes_them(kind: str, tmp_path: Path) -> None:
    subprocess.run(["cp", "--archive", "--parents", "install", "streaming/__init__.py", tmp_path], cwd=ROOT, check=True)
    done = subprocess.run([tmp_path / "install" / kind / "build"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "There is no build/payload/root, which install/payload makes: begin by make.\n")
