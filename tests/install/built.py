"""The wheel of this checkout, what names a build of it, and environments of what an install with or without the extra would bring."""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Versions:
    """Of the two packages and of the image; `rpm` with its release."""

    deb: str
    rpm: str
    image: str


def build_versions(checkout: Path = ROOT, **environ: str) -> Versions:
    """As the scripts that build find them in a checkout as it is now."""
    script = '. install/facts && printf "%s\\n" "$deb_version" "$version-$rpm_release" "$image_version"'
    environment = os.environ | {"TZ": "Asia/Tokyo"} | environ
    done = subprocess.run(["bash", "-euc", script], cwd=checkout, env=environment, check=True, capture_output=True, text=True)
    return Versions(*done.stdout.splitlines())


@dataclass(frozen=True, slots=True)
class Wheel:
    """A built wheel, and what it asks for."""

    path: Path
    requires: tuple[Requirement, ...]

    def asked(self, *extras: str) -> list[Requirement]:
        """Its own requirements, with those of the extras."""
        return [each for each in self.requires if _wanted(each, extras)]


def build_wheel(folder: Path) -> Wheel:
    """Build the wheel of this checkout as a release does, without a network."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("kafka_segment_tail-*.whl")
    with zipfile.ZipFile(path) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        stated = Parser().parsestr(archive.read(metadata).decode())
    return Wheel(path, tuple(Requirement(line) for line in stated.get_all("Requires-Dist", [])))


def closure(requirements: Sequence[Requirement]) -> dict[str, Distribution]:
    """The installed distributions that pip would install for these, by their names."""
    found: dict[str, Distribution] = {}
    waiting = list(requirements)
    while waiting:
        asked = waiting.pop()
        name = canonicalize_name(asked.name)
        if name not in found:
            found[name] = distribution(name)
            waiting += [each for line in found[name].requires or () if _wanted(each := Requirement(line), asked.extras)]
    return found


def _wanted(requirement: Requirement, extras: Sequence[str] | set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in (*extras, ""))


def environment(folder: Path, wheel: Wheel, distributions: dict[str, Distribution]) -> Path:
    """Make a virtual environment of the wheel and these distributions, which it has as links. Returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
    for name, place in {top for each in distributions.values() for top in _tops(each)}:
        (site / name).symlink_to(place)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(python)]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel.path)], check=True)
    return python


def _tops(found: Distribution) -> Iterator[tuple[str, Path]]:
    """What a distribution has directly in site-packages."""
    for file in found.files or ():
        name = file.parts[0]
        if name not in ("..", "__pycache__"):
            yield name, Path(str(found.locate_file(name)))


def installed_bytes(distributions: Sequence[Distribution]) -> int:
    """What these take on a disk, in bytes, without the modules that Python compiles."""
    paths = (Path(str(file.locate())) for each in distributions for file in each.files or () if not re.search(r"\.pyc$", str(file)))
    return sum(path.stat().st_size for path in paths if path.is_file())


def pins(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", lock.read_text()))
