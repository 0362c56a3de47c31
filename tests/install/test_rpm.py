"""The RPM in a bare root: what it needs, that it works there, and what an upgrade and its removal leave."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import streaming
from tests.install.built import ROOT, build_versions
from tests.install.debian import require_package
from tests.install.offline_commands import DATA, OFFLINE, answers
from tests.install.redhat import PROVIDED, BareRoot, bare_root, require_rpm, stub
from tests.tools import require_tool

pytestmark = [pytest.mark.image, pytest.mark.slow, pytest.mark.xdist_group("image")]

LOOKED_AT = "ConfigFilesCheck,DocCheck,FHSCheck,FilesCheck,LogrotateCheck,MixedOwnershipCheck,PostCheck,SignatureCheck,TagsCheck"
"""What rpmlint has checks for and a package of wheels may be asked: not their binaries, nor files that two of them have."""


@pytest.fixture(scope="module")
def package() -> Path:
    return require_rpm()


@pytest.fixture
def root(package: Path, tmp_path: Path) -> Iterator[BareRoot]:
    with bare_root(f"{DATA}:/kafka") as made:
        assert made.rpm("--install", stub(tmp_path)).returncode == 0
        yield made


def asked(*arguments: str | Path) -> list[str]:
    return subprocess.run([require_tool("rpm"), *arguments], check=True, capture_output=True, text=True).stdout.splitlines()


def test_it_works_where_only_python_is(package: Path, root: BareRoot) -> None:
    done = root.rpm("--install", package)
    assert done.returncode == 0, done.stderr
    assert (root.rpm("--verify", "segtail").returncode, root.rpm("--verify", "segtail").stdout) == (0, "")

    tried = root.run(
        f"segtail --version\n{OFFLINE}id -nG segtail\n"
        "stat -c '%U %a %n' /etc/segtail/agent.yaml /etc/sysconfig/segtail-agent\n"
        "grep EnvironmentFile /usr/lib/systemd/system/segtail-agent.service; find /etc/systemd -name 'segtail*'\n"
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    answers(tried.stdout + tried.stderr)
    lines = tried.stdout.splitlines()
    assert lines[0] == f"segtail {streaming.__version__}"
    assert lines[-4:] == [
        "segtail kafka",
        "root 644 /etc/segtail/agent.yaml",
        "root 644 /etc/sysconfig/segtail-agent",
        "EnvironmentFile=-/etc/sysconfig/segtail-agent",
    ]


def test_an_upgrade_keeps_what_was_configured_and_a_removal_leaves_the_users_own(package: Path, root: BareRoot) -> None:
    """As on any of Red Hat's systems, users and groups stay, and a file that was changed is put beside."""
    assert root.rpm("--install", package).returncode == 0
    root.run("echo '# mine' >>/etc/segtail/agent.yaml; mkdir -p /var/cache/segtail-agent")
    assert root.rpm("--upgrade", "--replacepkgs", package).returncode == 0
    assert root.run("tail -n 1 /etc/segtail/agent.yaml; segtail --version >/dev/null").stdout == "# mine\n"

    assert root.rpm("--erase", "segtail").returncode == 0
    left = "find /etc /usr /var -iname '*segtail*' | sort; tail -n 1 /etc/segtail/agent.yaml.rpmsave; id -nG segtail"
    assert root.run(left).stdout.splitlines() == ["/etc/segtail", "# mine", "segtail kafka"]


def test_a_host_without_python_3_11_is_refused(package: Path, tmp_path: Path) -> None:
    with bare_root() as bare:
        assert bare.rpm("--install", stub(tmp_path, PROVIDED[1:])).returncode == 0
        refused = bare.rpm("--install", package)
        assert (refused.returncode != 0, "python3.11 is needed by segtail" in refused.stderr) == (True, True)


def test_its_files_are_those_of_the_debian_package_where_red_hat_has_them(package: Path) -> None:
    elsewhere = {
        "/lib/systemd/": "/usr/lib/systemd/",
        "/etc/default/": "/etc/sysconfig/",
        "/usr/share/zsh/vendor-completions/": "/usr/share/zsh/site-functions/",
        "/usr/share/doc/segtail/third-party": "/usr/share/licenses/segtail/third-party",
    }
    listed = subprocess.run(["dpkg-deb", "--fsys-tarfile", require_package()], check=True, capture_output=True)
    names = subprocess.run(["tar", "--list"], input=listed.stdout, check=True, capture_output=True).stdout.decode().splitlines()
    debian = {name.removeprefix(".") for name in names if not name.endswith("/")}
    for there, here in elsewhere.items():
        debian = {here + name.removeprefix(there) if name.startswith(there) else name for name in debian}
    debian -= {"/usr/share/lintian/overrides/segtail", "/usr/share/doc/segtail/copyright", "/usr/share/doc/segtail/changelog.Debian.gz"}

    files = asked("--query", "--package", "--queryformat", "[%{FILEMODES:perms} %{FILENAMES}\n]", package)
    assert {line.split(" ", 1)[1] for line in files if not line.startswith("d")} == debian | {"/usr/share/licenses/segtail/LICENSE"}
    assert sorted(asked("--query", "--package", "--configfiles", package)) == ["/etc/segtail/agent.yaml", "/etc/sysconfig/segtail-agent"]


def test_it_names_the_build_that_it_is_of(package: Path) -> None:
    assert asked("--query", "--package", "--queryformat", "%{VERSION}-%{RELEASE}\n", package) == [build_versions().rpm]


def test_its_tag_names_the_licences_of_all_that_it_brings(package: Path) -> None:
    (tag,) = asked("--query", "--package", "--queryformat", "%{LICENSE}\n", package)
    listed = (ROOT / "build" / "payload" / "root" / "usr/share/doc/segtail/third-party").read_text()
    named = {part for line in re.findall(r"(?m)^\S+ \S+: (.+)$", listed) for part in re.split(r" (?:AND|OR) ", line)}
    assert named - {"BSD"} <= set(tag.split(" AND "))  # a classifier of old does not say which BSD licence it is


def test_rpmlint_has_nothing_to_report(package: Path) -> None:
    lint = [require_tool("rpmlint"), "--config", ROOT / "install/rpm/rpmlint.toml", "--checks", LOOKED_AT, package]
    done = subprocess.run(lint, capture_output=True, text=True, check=False)
    assert " 0 errors, 0 warnings" in done.stdout, done.stdout
