"""`segtail runbook` and `segtail export`: what they print and write, and what they refuse."""

import json
from pathlib import Path

import pytest
import yaml

from streaming.shipped.runbooks import runbooks
from tests.commands import run_command
from tests.tables import each_row

ROOT = Path(__file__).resolve().parents[2]
PAGE = "https://segtail.example.org"


@each_row("name", ["GroupStopped", "groupstopped", "GroupStopped.md"])
def test_a_runbook_is_found_in_whichever_case(name: str) -> None:
    done = run_command("runbook", name)
    assert done.returncode == 0
    assert done.stdout.startswith("# GroupStopped\n\n## Meaning\n")


def test_links_are_printed_as_what_they_lead_to() -> None:
    printed = run_command("runbook", "AgentDown").stdout
    assert "`segtail_broker_fenced` and UnderReplicated show whether" in printed
    assert "another token's name (docs/security.md#between-jobs-and-agents) |" in printed
    assert "it refuses what is beyond its limits (docs/security.md#limits-of-an-agents-port); its log" in printed


def test_no_link_is_left_in_a_runbook() -> None:
    assert [each.name for each in runbooks() if "](" in each.printed] == []


def test_without_a_name_all_are_listed() -> None:
    lines = run_command("runbook").stdout.splitlines()
    assert lines[0].split() == ["runbook", "severity", "meaning"]
    assert len(lines) == len(list((ROOT / "docs" / "runbooks").glob("*.md")))


@each_row(
    ("name", "message"),
    [
        ("GroupStoped", "there is no runbook GroupStoped, did you mean GroupStopped"),
        ("truncated", "there is no runbook truncated, did you mean LogTruncated?"),
        ("zzz", "there is no runbook zzz: `segtail runbook` lists them"),
        ("README", "there is no runbook README"),
        ("../../etc/passwd", "there is no runbook ../../etc/passwd"),
        ("a\x1b[2J", r"there is no runbook 'a\x1b[2J'"),
    ],
)
def test_a_name_that_there_is_not_is_refused_with_similar_ones(name: str, message: str) -> None:
    done = run_command("runbook", name)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"segtail: error: {message}")


@pytest.mark.parametrize("there", ["conf/alerts", "conf/rules", "conf/dashboards", "docs/runbooks"])
def test_without_addresses_files_are_those_of_the_checkout(there: str, tmp_path: Path) -> None:
    kind = Path(there).name
    done = run_command("export", kind, tmp_path / "new" / kind)
    written = {path.name: path.read_text() for path in (tmp_path / "new" / kind).iterdir()}
    assert written == {path.name: path.read_text() for path in (ROOT / there).iterdir()}
    assert done.stdout == f"{len(written)} file{'s' if len(written) > 1 else ''} written to {tmp_path / 'new' / kind}\n"


def test_examples_are_written_too(tmp_path: Path) -> None:
    assert run_command("export", "examples", tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alertmanager.yml", "keda.yaml", "otel-collector.yaml", "prometheus.yml"]


def test_rules_that_serve_names_of_another_tool_are_written_alone(tmp_path: Path) -> None:
    assert run_command("export", "rules", tmp_path, "--as", "burrow").returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["burrow.yaml"]


@each_row(
    ("kind", "tool", "message"),
    [
        ("rules", "akhq", "--as 'akhq': there are burrow, jmx_exporter, kafka_exporter, kafka_lag_exporter, klag, kminion"),
        ("alerts", "burrow", "--as goes with rules, and not with alerts"),
    ],
)
def test_names_of_a_tool_that_there_are_not_are_refused(kind: str, tool: str, message: str, tmp_path: Path) -> None:
    done = run_command("export", kind, tmp_path, "--as", tool)
    assert (done.returncode, done.stderr) == (2, f"segtail: error: {message}\n")
    assert [*tmp_path.iterdir()] == []


def test_runbooks_elsewhere_are_files(tmp_path: Path) -> None:
    run_command("export", "alerts", tmp_path, "--url", PAGE, "--runbooks", "https://wiki.example.org/kafka/")
    texts = yaml.safe_load((tmp_path / "AgentDown.yaml").read_text())["groups"][0]["rules"][0]["annotations"]
    assert texts["runbook_url"] == "https://wiki.example.org/kafka/AgentDown.md"
    assert texts["page"].startswith(PAGE)
    assert "dashboard" not in texts


@each_row(
    ("options", "folder"),
    [
        (["--url", PAGE], f"{PAGE}/runbooks"),
        (["--url", PAGE, "--runbooks", "https://wiki.example.org/k"], "https://wiki.example.org/k"),
        ([], "docs/runbooks"),
    ],
)
def test_a_dashboard_leads_to_the_runbooks(options: list[str], folder: str, tmp_path: Path) -> None:
    run_command("export", "dashboards", tmp_path, "--force", *options)
    choices = json.loads((tmp_path / "groups.json").read_text())["templating"]["list"]
    assert [each["query"] for each in choices if each["name"] == "runbooks"] == [folder]


def test_files_that_differ_are_kept_unless_forced(tmp_path: Path) -> None:
    run_command("export", "dashboards", tmp_path)
    (tmp_path / "groups.json").write_text("mine\n")
    (tmp_path / "overview.json").unlink()
    kept = sorted(path.name for path in tmp_path.iterdir())
    refused = run_command("export", "dashboards", tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"segtail: error: {tmp_path} has other files of these names: groups.json; --force overwrites them\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == kept
    forced = run_command("export", "dashboards", tmp_path, "--force")
    assert forced.stdout == f"2 files written to {tmp_path}, {len(kept) - 1} files there already\n"
    assert (tmp_path / "groups.json").read_bytes() == (ROOT / "conf" / "dashboards" / "groups.json").read_bytes()


@each_row(
    "address",
    ["segtail.example.org", "ftp://a", "https://a/'b", 'https://a"', "https://a b", "https://{{ a }}", "https://u:p@a", "https://"],
)
def test_an_address_that_would_change_the_file_is_refused(address: str, tmp_path: Path) -> None:
    for option in ("--url", "--runbooks", "--grafana"):
        done = run_command("export", "alerts", tmp_path, option, address)
        assert (done.returncode, option in done.stderr) == (2, True)
    assert [*tmp_path.iterdir()] == []


@each_row(
    ("kind", "option"),
    [
        ("dashboards", "--grafana"),
        *((kind, option) for kind in ("rules", "runbooks", "examples") for option in ("--url", "--runbooks", "--grafana")),
    ],
)
def test_an_address_that_no_file_of_the_kind_holds_is_refused(kind: str, option: str, tmp_path: Path) -> None:
    done = run_command("export", kind, tmp_path, option, PAGE)
    assert (done.returncode, done.stderr) == (2, f"segtail: error: {option} would change nothing in {kind}: leave it out\n")
    assert [*tmp_path.iterdir()] == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run_command("export", "rules", tmp_path / "file" / "inner")
    assert done.returncode == 2
    assert done.stderr.startswith(f"segtail: error: {tmp_path / 'file' / 'inner'}")
