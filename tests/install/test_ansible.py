"""The Ansible role of the agent on a bare Debian, whose Python stands in for this machine's: every task changes the container alone."""

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Template

from tests.image.containers import podman
from tests.install.built import ROOT
from tests.install.debian import require_package
from tests.install.offline_commands import DATA
from tests.install.redhat import BareRoot, bare_root
from tests.tables import each_row
from tests.tools import require_tool

ROLES = ROOT / "install" / "ansible"


def ansible(folder: Path, playbook: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a playbook with nothing of this user's configuration."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ANSIBLE_ROLES_PATH": str(ROLES),
        "ANSIBLE_NOCOLOR": "true",
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    command = [require_tool("ansible-playbook"), playbook, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, cwd=folder)


@pytest.mark.programs
def test_ansible_reads_the_example_and_every_task_of_the_role(tmp_path: Path) -> None:
    read = ansible(tmp_path, ROLES / "agents.yaml", "--inventory", "localhost,", "--syntax-check")
    assert read.returncode == 0, read.stderr

    listed = ansible(tmp_path, ROLES / "agents.yaml", "--inventory", "brokers,", "--list-tasks")
    assert listed.returncode == 0, listed.stderr


def test_the_example_sets_only_what_the_role_has_and_uses_options_that_there_are() -> None:
    (play,) = yaml.safe_load((ROLES / "agents.yaml").read_text())
    (role,) = play["roles"]
    known = yaml.safe_load((ROLES / "segtail_agent" / "defaults" / "main.yml").read_text())
    options = yaml.safe_load((ROOT / "conf" / "segtail.yaml").read_text())
    assert set(role["vars"]) <= set(known)
    assert set(role["vars"]["segtail_options"]) <= set(options)


@each_row(
    ("template", "given", "lines"),
    [
        ("group", {}, ["SupplementaryGroups="]),
        ("group", {"segtail_group": "confluent"}, ["SupplementaryGroups=", "SupplementaryGroups=confluent"]),
        ("user", {}, []),
        ("user", {"segtail_user": "cp-kafka"}, ["User=cp-kafka"]),
        ("user", {"segtail_read_all": True}, ["CapabilityBoundingSet=CAP_DAC_READ_SEARCH", "AmbientCapabilities=CAP_DAC_READ_SEARCH"]),
    ],
)
def test_a_drop_in_has_what_was_asked_for_and_no_group_that_may_not_be_there(
    template: str, given: dict[str, str | bool], lines: list[str]
) -> None:
    """A unit with a group that the host has not does not start: 216/GROUP."""
    role = ROLES / "segtail_agent"
    variables = yaml.safe_load((role / "defaults" / "main.yml").read_text()) | given
    written = Template((role / "templates" / f"{template}.conf.j2").read_text(), trim_blocks=True).render(variables)
    assert written.splitlines()[1:] == ["[Service]", *lines]


@dataclass(frozen=True, slots=True)
class Host:
    """A bare Debian that Ansible takes for this machine: modules are run by its Python, and lie in a folder that both have."""

    root: BareRoot
    folder: Path

    def play(self, **variables: Any) -> tuple[int, int, str]:
        """Run the role. Returns the status, how many tasks changed something, and what a failed task reports."""
        playbook = self.folder / "playbook.yaml"
        play = {"hosts": "all", "connection": "local", "roles": [{"role": "segtail_agent", "vars": variables}]}
        playbook.write_text(yaml.safe_dump([play]))
        reached = f"ansible_python_interpreter={self.folder / 'python'} ansible_remote_tmp={self.folder / 'remote'}"
        done = ansible(self.folder, playbook, "--inventory", "localhost,", "--extra-vars", reached)
        recap = re.search(r"(?m)^localhost +: ok=\d+ +changed=(\d+) ", done.stdout)
        assert recap is not None, done.stdout + done.stderr
        return done.returncode, int(recap[1]), "".join(re.findall(r"(?m)^fatal: .*", done.stdout))


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    require_tool("ansible-playbook")
    package = require_package()
    with bare_root(f"{DATA}:/kafka", shared=tmp_path) as root:
        python = " ".join(map(str, podman("exec", "--interactive", root.container, "/usr/bin/python3")))
        (tmp_path / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (tmp_path / "python").chmod(0o755)
        (tmp_path / "segtail.deb").hardlink_to(package)
        yield Host(root, tmp_path)


@pytest.mark.image
@pytest.mark.slow
@pytest.mark.xdist_group("image")
def test_a_host_gets_the_agent_once_and_a_wrong_option_reaches_no_file(host: Host) -> None:
    log_dirs = ["/kafka/log_dirs/overdue/n1/d0"]
    given = {"segtail_package": "segtail.deb", "segtail_log_dirs": log_dirs, "segtail_group": "confluent", "segtail_name": "b1"}
    status, changed, failed = host.play(**given)
    assert status == 0, failed
    assert changed > 4

    shown = host.root.run(
        "cat /etc/default/segtail-agent /etc/systemd/system/segtail-agent.service.d/group.conf\n"
        "segtail config --config /etc/segtail/agent.yaml | grep -A 1 ^log_dirs\n"
        "stat -c '%U %a' /etc/segtail/agent.yaml\n"
    )
    assert shown.returncode == 0, shown.stderr
    lines = [line for line in shown.stdout.splitlines() if not line.startswith("#")]
    assert lines == [
        'AGENT_OPTIONS="--listen 127.0.0.1:8815 --name b1"',
        *("[Service]", "SupplementaryGroups=", "SupplementaryGroups=confluent"),
        *("log_dirs:", f"- {log_dirs[0]}", "root 644"),
    ]

    status, changed, failed = host.play(**given)
    assert (status, changed) == (0, 0), failed

    status, changed, failed = host.play(**given, segtail_options={"read_rat": "1MiB"})
    assert (status, "unknown option" in failed) == (2, True), failed
    assert host.root.run("grep -c read_rat /etc/segtail/agent.yaml || true").stdout == "0\n"

    status, changed, failed = host.play(segtail_package="segtail.deb", segtail_log_dirs="/kafka")
    assert (status, "Set segtail_package to the .deb or .rpm" in failed) == (2, True), failed
