"""One file that is taken along: where it unpacks itself, and what it says where it cannot. What it holds: test_bare_machine.py."""

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.install.built import ROOT
from tests.processes import until

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PRINTS = "import os, sys; print(sys.argv[1:], __file__, *sorted(name for name in os.environ if name.startswith('SEGTAIL_')))"


WAITS = "import sys; print('runs', flush=True); sys.stdin.read(); import streaming.terminal.cli.late"


def made(path: Path, command: str = PRINTS, **built: str) -> Path:
    """A file like the real one, whose command prints its arguments and where it lies."""
    facts = {"python": PYTHON, "machine": platform.machine(), "digest": "abc", **built}
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(ROOT / "install" / "pyz" / "unpack.py", "__main__.py")
        archive.writestr("built.json", json.dumps(facts))
        for package in ("streaming", "streaming/terminal", "streaming/terminal/cli"):
            archive.writestr(f"site/{package}/__init__.py", "")
        archive.writestr("site/streaming/terminal/cli/__main__.py", command)
        archive.writestr("site/streaming/terminal/cli/late.py", "print('goes on')")
    return path


def run(file: Path, *arguments: str, **environ: Path) -> subprocess.CompletedProcess[str]:
    given = {name: str(value) for name, value in environ.items()}
    command = [sys.executable, str(file), *arguments]
    return subprocess.run(command, env={"PATH": os.environ["PATH"], **given}, capture_output=True, text=True, check=False)


def test_it_unpacks_itself_once_into_the_user_s_cache(tmp_path: Path) -> None:
    file, home = made(tmp_path / "segtail.pyz"), tmp_path / "home"
    place = home / ".cache" / "segtail" / "abc" / "site" / "streaming" / "terminal" / "cli" / "__main__.py"
    for _ in range(2):
        done = run(file, "topics", "--unused", "30d", HOME=home, TMPDIR=tmp_path)
        assert (done.returncode, done.stdout) == (0, f"['topics', '--unused', '30d'] {place}\n")
    assert [each.name for each in place.parents[4].parent.iterdir()] == ["abc"]
    assert place.parents[5].stat().st_mode & 0o777 == 0o700
    newer = made(tmp_path / "newer.pyz", digest="def")
    assert "/def/" in run(newer, HOME=home, TMPDIR=tmp_path).stdout


def test_what_one_left_that_was_killed_goes_and_one_that_still_unpacks_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "there"
    (folder / "part" / "site" / "streaming").mkdir(parents=True)
    folder.chmod(0o700)
    done = run(made(tmp_path / "segtail.pyz"), SEGTAIL_UNPACKED=folder)
    assert done.returncode == 0, done.stderr
    assert [each.name for each in folder.iterdir()] == ["abc"]
    assert [*(folder / "abc" / "site" / "streaming").glob("__pycache__/*.pyc")], "a first command would compile"

    newer = [sys.executable, str(made(tmp_path / "newer.pyz", digest="def"))]
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    with subprocess.Popen(newer, env={"SEGTAIL_UNPACKED": str(folder)}, stdout=subprocess.PIPE, text=True) as process:
        waits = re.compile(rf"-> FLOCK .* {process.pid} ")
        until("it waits", lambda: waits.search(Path("/proc/locks").read_text()))
        (folder / "abc").rename(folder / "def")
        os.close(other)
        assert process.communicate()[0].startswith(f"[] {folder}/def/")


def test_a_new_build_removes_the_copies_of_others_and_none_that_a_process_uses(tmp_path: Path) -> None:
    (folder := tmp_path / "there").mkdir(mode=0o700)
    (folder / "mine" / "site").mkdir(parents=True)

    def there(digest: str) -> list[str]:
        assert run(made(tmp_path / "segtail.pyz", digest=digest), SEGTAIL_UNPACKED=folder).returncode == 0
        return sorted(each.name for each in folder.iterdir())

    assert there("abc") == ["abc", "mine"]
    waits = [sys.executable, str(made(tmp_path / "waits.pyz", WAITS, digest="def"))]
    with subprocess.Popen(
        waits, env={"SEGTAIL_UNPACKED": str(folder)}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        assert there("ghi") == ["def", "ghi", "mine"]
        assert process.communicate()[0] == "goes on\n"
    assert there("ghi") == ["def", "ghi", "mine"], "only a new build looks"
    assert there("jkl") == ["jkl", "mine"]


def test_a_copy_that_is_removed_while_a_process_takes_it_is_unpacked_again(tmp_path: Path) -> None:
    folder, file = tmp_path / "there", made(tmp_path / "segtail.pyz")
    assert run(file, SEGTAIL_UNPACKED=folder).returncode == 0
    with (folder / "abc" / "segtail.lock").open("rb") as removes:
        fcntl.flock(removes, fcntl.LOCK_EX)
        with subprocess.Popen(
            [sys.executable, str(file)], env={"SEGTAIL_UNPACKED": str(folder)}, stdout=subprocess.PIPE, text=True
        ) as process:
            waits = re.compile(rf"-> FLOCK .* {process.pid} ")
            until("it waits", lambda: waits.search(Path("/proc/locks").read_text()))
            shutil.rmtree(folder / "abc")
            fcntl.flock(removes, fcntl.LOCK_UN)
            assert process.communicate()[0].startswith(f"[] {folder}/abc/")


def test_without_a_home_that_can_be_written_it_takes_the_temporary_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.touch()
    done = run(made(tmp_path / "segtail.pyz"), HOME=home, TMPDIR=tmp_path)
    assert done.returncode == 0
    assert f"{tmp_path}/segtail-{os.geteuid()}/abc/" in done.stdout


def test_where_to_unpack_is_no_setting_of_the_command(tmp_path: Path) -> None:
    done = run(made(tmp_path / "segtail.pyz"), SEGTAIL_UNPACKED=tmp_path / "there", SEGTAIL_LISTEN=Path("127.0.0.1:1"))
    assert done.stdout.endswith("/cli/__main__.py SEGTAIL_LISTEN\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user: run the tests as root")
def test_a_user_of_no_name_has_no_home(tmp_path: Path) -> None:
    somebody = ("setpriv", "--reuid=54321", "--inh-caps=+dac_override", "--ambient-caps=+dac_override")  # who reads this checkout
    command = [*somebody, sys.executable, str(made(tmp_path / "segtail.pyz"))]
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path}/segtail-54321/abc/" in done.stdout


def test_a_folder_into_which_others_write_is_not_used(tmp_path: Path) -> None:
    mine = tmp_path / "open"
    mine.mkdir()
    mine.chmod(0o777)
    done = run(made(tmp_path / "segtail.pyz"), SEGTAIL_UNPACKED=mine)
    assert (done.returncode, done.stdout) == (2, "")
    reason = f"there is no place to unpack 240 MB ({mine}: others may write there): name one by SEGTAIL_UNPACKED=DIR"
    assert done.stderr == f"segtail: error: {reason}\n"
    assert [*mine.iterdir()] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount: run the tests as root")
def test_a_folder_from_which_nothing_may_run_is_not_used(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir()
    mounted = 'mount -t tmpfs -o noexec,mode=700 tmpfs "$SEGTAIL_UNPACKED" && exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", mounted, "sh", sys.executable, str(made(tmp_path / "segtail.pyz"))]
    environ = {**os.environ, "SEGTAIL_UNPACKED": str(home)}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{home}: mounted with noexec, so no library can be loaded from there" in done.stderr


@pytest.mark.parametrize("built", [{"python": "3.99"}, {"machine": "s390x"}])
def test_another_python_or_machine_is_told_in_a_sentence(built: dict[str, str], tmp_path: Path) -> None:
    done = run(made(tmp_path / "segtail.pyz", **built), HOME=tmp_path)
    wanted = f"Python {built.get('python', PYTHON)} on linux {built.get('machine', platform.machine())}"
    here = f"Python {PYTHON} on linux {platform.machine()}"
    assert (done.returncode, done.stderr) == (2, f"segtail: error: this file is for {wanted}, and this is {here}\n")


def test_it_runs_without_an_environment(tmp_path: Path) -> None:
    """As `env -i ./segtail.pyz`: without PATH an interpreter that was found by its name does not know where it lies."""
    file = made(tmp_path / "segtail.pyz")
    environ = {"SEGTAIL_UNPACKED": str(tmp_path / "there")}
    done = subprocess.run(
        ["python3", str(file), "top"], executable=sys.executable, env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout[:8], done.stderr) == (0, "['top'] ", "")
