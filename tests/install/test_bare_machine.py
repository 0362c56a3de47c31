"""Wheel and Debian package on a bare Debian 12: what they install, that it works without a Java, and what is left when it goes.

The extra on such a machine is the container image: pip installed it on the same Debian, with a Java (tests/image/test_image.py).
"""

import re
import subprocess
from pathlib import Path

import pytest

import streaming
from tests.install.built import ROOT, build_versions
from tests.install.debian import WHEELS, extracted, in_bare_debian, require_package
from tests.install.offline_commands import DATA, OFFLINE, TRIED, answers
from tests.tools import missing, require_tool

pytestmark = [pytest.mark.image, pytest.mark.slow, pytest.mark.xdist_group("image")]

HARDENING = (
    "ProtectSystem=strict",
    "NoNewPrivileges=yes",
    "CapabilityBoundingSet=",
    "SystemCallFilter=~@privileged @resources",
    "UMask=0077",
)

MEASURED = """#!/usr/bin/python3 -S
import os, subprocess, sys
command = subprocess.Popen(["python3", "/segtail.pyz", *sys.argv[1:]])
_, status, used = os.wait4(command.pid, 0)
print("at most", used.ru_maxrss >> 10, "MiB of", sys.argv[1], file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def package() -> Path:
    return require_package()


@pytest.fixture(scope="module")
def files(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return extracted(package, tmp_path_factory.mktemp("deb"))


def test_the_wheel_works_in_a_new_environment_without_a_java() -> None:
    require_package()
    script = (
        "! command -v java\n"
        "python3 -m venv /v\n"
        "/v/bin/pip install --quiet --no-index --find-links /wheels kafka-segment-tail\n"
        f"PATH=/v/bin:$PATH\n{OFFLINE}"
    )
    done = in_bare_debian(script, f"{WHEELS}:/wheels", f"{DATA}:/kafka")

    assert done.returncode == 0, done.stderr
    answers(done.stdout + done.stderr)


def test_one_file_that_was_copied_works_for_a_user_without_a_home() -> None:
    require_package()
    found = sorted((ROOT / "build" / "pyz").glob("segtail-*-py311-x86_64.pyz"))
    if len(found) != 1:
        missing("there is no file to take along in build/pyz (make pyz)")
    script = (
        f"cat >/usr/bin/segtail <<'E'\n{MEASURED}E\nchmod 755 /usr/bin/segtail\n"
        f"cat >/tmp/run <<'E'\nsegtail --version\n{OFFLINE}E\n"
        "su -s /bin/sh nobody -c 'sh -e /tmp/run; ls /tmp/segtail-*'\n"
        "LD_BIND_NOW=1 PYTHONPATH=$(echo /tmp/segtail-*/*/site) python3 -c 'import pyarrow.acero, pyarrow.compute'\n"  # nothing is missing
    )
    done = in_bare_debian(script, f"{found[0]}:/segtail.pyz", f"{DATA}:/kafka")
    assert done.returncode == 0, done.stderr
    answers(done.stdout + done.stderr)
    peaks = {name: int(size) for size, name in re.findall(r"(?m)^at most (\d+) MiB of (\S+)$", done.stderr)}
    assert peaks.keys() == {"--version", *TRIED}
    assert {name: size for name, size in peaks.items() if size > (130 if name == "page" else 120)} == {}


def test_make_install_does_what_people_expect_of_it(tmp_path: Path) -> None:
    make = subprocess.run(["make", "-C", ROOT, "install", f"PREFIX={tmp_path}"], capture_output=True, text=True, check=False)
    assert make.returncode == 0, make.stderr
    done = subprocess.run([tmp_path / "bin" / "segtail", "--version"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == f"segtail {streaming.__version__}\n"
    for line in make.stdout.splitlines()[-1].partition("rm -r ")[2].split():
        assert Path(line).exists()


def test_the_package_is_of_this_checkout(files: Path) -> None:
    site, source = files / "usr/lib/segtail/lib/python3.11/site-packages", Path(streaming.__file__).parent
    lookup = source / "spark/lookup"  # lies beside streaming where it is installed
    there = {path.relative_to(source.parent): path.read_bytes() for path in source.rglob("*.py") if not path.is_relative_to(lookup)}
    there |= {path.relative_to(lookup): path.read_bytes() for path in lookup.rglob("*.py")}
    packages = {path.parts[0] for path in there}
    packed = {path.relative_to(site): path.read_bytes() for package in packages for path in (site / package).rglob("*.py")}
    assert packages == {"streaming", "pyspark_segtail"}
    assert packed == there, "make deb"


def test_the_package_works_and_its_service_neither_starts_nor_is_enabled(package: Path) -> None:
    script = (
        "! command -v java\n"
        "dpkg --install /package.deb >/dev/null\n"
        f"{OFFLINE}"
        "s=0; segtail run --log-dirs /kafka || s=$?; echo run $s\n"
        "id -nG segtail; stat -c '%U %a %n' /etc/segtail/agent.yaml /etc/default/segtail-agent\n"
        "find /etc/systemd -name 'segtail*'; ! grep -qs 'segtail' /proc/[2-9]*/cmdline\n"
        "dpkg --verify segtail; echo verified\n"
        # as a child the agent ends with its standard input, which is therefore kept open until it listens
        "mkfifo -m 666 /tmp/in; touch /tmp/said\n"
        "su -s /bin/sh segtail -c 'segtail agent --config /etc/segtail/agent.yaml --log-dirs /kafka/log_dirs/overdue/n1/d0 "
        "--listen 127.0.0.1:0 --child </tmp/in' 2>/tmp/said &\n"
        "exec 3>/tmp/in; timeout 60 sh -c 'until grep -q \"agent listens\" /tmp/said; do sleep 0.1; done'; exec 3>&-; wait $!\n"
        "cat /tmp/said >&2\n"
        "test -s /usr/share/man/man1/segtail.1.gz; test -s /usr/share/man/man1/segtail-disk.1.gz\n"
        "grep -q segtail /usr/share/bash-completion/completions/segtail\n"
    )
    done = in_bare_debian(script, f"{package}:/package.deb", f"{DATA}:/kafka")

    assert done.returncode == 0, done.stdout + done.stderr
    answers(done.stdout + done.stderr)
    lines = done.stdout.splitlines()
    assert lines[lines.index("run 2") + 1 :][:4] == [
        "segtail kafka",
        "root 644 /etc/segtail/agent.yaml",
        "root 644 /etc/default/segtail-agent",
        "verified",
    ]
    assert "agent listens" in done.stderr


def test_an_upgrade_keeps_what_was_configured_and_a_purge_takes_away_what_was_made(package: Path) -> None:
    script = (
        "getent passwd | sort >/before; getent group | sort >>/before\n"
        "dpkg --install /package.deb >/dev/null; echo '# mine' >>/etc/segtail/agent.yaml\n"
        "dpkg --install /package.deb >/dev/null; tail -n 1 /etc/segtail/agent.yaml; mkdir -p /var/cache/segtail-agent\n"
        "dpkg --remove segtail >/dev/null; tail -n 1 /etc/segtail/agent.yaml\n"
        "ls /usr/lib/segtail /usr/bin/segtail 2>&1 | grep -c 'No such'\n"
        "dpkg --purge segtail >/dev/null; getent passwd | sort >/after; getent group | sort >>/after; cmp /before /after\n"
        "find / -xdev -path /proc -prune -o -iname '*segtail*' -print | grep -v ^/package.deb || echo nothing left\n"
    )
    done = in_bare_debian(script, f"{package}:/package.deb")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["# mine", "# mine", "2", "nothing left"]


def test_a_user_and_a_group_that_were_there_before_stay(package: Path) -> None:
    script = (
        "addgroup --system --quiet kafka; adduser --system --quiet --group --no-create-home segtail\n"
        "dpkg --install /package.deb >/dev/null; id -nG segtail\n"
        "dpkg --purge segtail >/dev/null; id -nG segtail; getent group kafka | cut -d: -f1\n"
    )
    done = in_bare_debian(script, f"{package}:/package.deb")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["segtail kafka", "segtail kafka", "kafka"]


def test_systemd_takes_the_unit_and_finds_it_well_shut(files: Path, tmp_path: Path) -> None:
    """The command of the unit is not on this machine, so another takes its place."""
    text = (files / "lib/systemd/system/segtail-agent.service").read_text()
    unit = tmp_path / "segtail-agent.service"
    unit.write_text(text.replace("/usr/bin/segtail", "/usr/bin/true"))
    analyze = require_tool("systemd-analyze")

    verified = subprocess.run([analyze, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    assert [line for line in verified.stderr.splitlines() if unit.name in line] == []
    shut = [analyze, "security", "--offline=true", "--threshold=20", "--no-pager", unit]
    assert subprocess.run(shut, capture_output=True, check=False).returncode == 0
    assert subprocess.run([*shut[:3], "--threshold=10", *shut[4:]], capture_output=True, check=False).returncode != 0


@pytest.mark.parametrize("unit", ["conf/segtail-agent.service", "install/deb/segtail-agent.service"])
@pytest.mark.parametrize("choice", ["as it is", "reads every file"])
def test_systemd_finds_each_choice_of_the_units_well_shut(unit: str, choice: str, tmp_path: Path) -> None:
    """Also with the right to read every file, which lets the agent read the snapshots of the metadata log."""
    text = (
        (Path(__file__).parents[2] / unit)
        .read_text()
        .replace("/opt/segtail/bin/segtail", "/usr/bin/true")
        .replace("/usr/bin/segtail", "/usr/bin/true")
    )
    if choice == "reads every file":
        for name in ("CapabilityBoundingSet", "AmbientCapabilities"):
            assert f"\n#{name}=CAP_DAC_READ_SEARCH\n" in text
            text = text.replace(f"\n{name}=\n", "\n").replace(f"#{name}=CAP", f"{name}=CAP")
    changed = tmp_path / "segtail-agent.service"
    changed.write_text(text)
    analyze = require_tool("systemd-analyze")

    verified = subprocess.run([analyze, "verify", "--man=no", changed], capture_output=True, text=True, check=False)
    assert [line for line in verified.stderr.splitlines() if changed.name in line] == []
    done = subprocess.run([analyze, "security", "--offline=true", "--threshold=22", "--no-pager", changed], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout.splitlines()[-1]


def test_the_group_of_confluents_packages_is_taken_where_there_is_one(package: Path) -> None:
    script = (
        "addgroup --system --quiet confluent\n"
        "dpkg --install /package.deb >/dev/null; id -nG segtail; getent group kafka || echo no other is made\n"
        "dpkg --purge segtail >/dev/null; getent group confluent | cut -d: -f1\n"
    )
    done = in_bare_debian(script, f"{package}:/package.deb")

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == ["segtail confluent", "no other is made", "confluent"]


def test_the_unit_is_as_shut_as_the_one_to_copy(files: Path) -> None:
    """Both units differ in whom they run as and with which options; what they may do is the same."""
    own, copied = (
        text.partition("CacheDirectory=segtail-agent\n")[2]
        for text in (
            (files / "lib/systemd/system/segtail-agent.service").read_text(),
            (Path(__file__).parents[2] / "conf" / "segtail-agent.service").read_text(),
        )
    )
    assert all(line in own for line in HARDENING)
    assert own == copied.replace("ReadOnlyPaths=-/var/lib/kafka\n", "")


def test_the_package_says_what_it_needs(package: Path) -> None:
    done = subprocess.run(["dpkg-deb", "--field", package, "Package", "Version", "Architecture", "Depends"], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "Package: segtail",
        f"Version: {build_versions().deb}",
        "Architecture: amd64",
        "Depends: adduser, libc6 (>= 2.28), libstdc++6, python3 (>= 3.11), python3 (<< 3.12), python3.11",
    ]
