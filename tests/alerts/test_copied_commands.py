"""Names that clients chose in the texts of alerts: what is copied from there does one thing in a shell, and no name makes up a line."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.cluster.verdicts.commands import Commands, option
from streaming.common.short_names import short_name
from tests.alerts.promtool import cases_of, passes
from tests.alerts.rendering import CONF
from tests.cli.served_groups import GROUPS, job
from tests.commands import run_command
from tests.tables import each_row

GROUP_ALERTS = sorted(path for path in (CONF / "alerts").glob("Group*.yaml") if "scope: group" in path.read_text())
JOB = "http://kafka-1:9712"
COMMAND = f"- segtail why --job '{JOB}' 'billing'"
REFUSED = "- look at the group on segtail's page: its name holds control characters or is too long, so no command can be copied"
NAMES = [
    "x\x03\nrm -rf ~\n",
    "\x1b[201~\nrm -rf ~\n",
    "a\u202eb",
    "a\u2028b",
    "-rf",
    "--help",
    "a'b",
    "'; rm -rf ~; '",
    "$(id)",
    "`id`",
    "a b",
    "süß 語",
    "{{ $value }}",
    "n" * 1000,
    "n" * 30_000,
    short_name("n" * 30_000),
]


def cleaned(name: str) -> str:
    """A name as the text of an alert has it."""
    plain = "".join(each if each.isprintable() else "?" for each in name)
    return plain if len(plain) <= 250 else plain[:250] + "..."


def command_for(name: str, url: str = JOB) -> str:
    if not name.isprintable() or len(name) > 1000:
        return REFUSED
    quoted = name.replace("'", "'\\''")
    where = f"'{url}'" if re.fullmatch(r"https?://[][A-Za-z0-9._:-]+", url) else "<http://host:port>"
    return f"- segtail why --job {where} {'-- ' if name.startswith('-') else ''}'{quoted}'"


def firing(path: Path, name: str, url: str = JOB) -> dict[str, Any]:
    """The first case of an alert's tests, up to where it fires, for a group of another name, of a job with another address."""
    case = cases_of(path.stem)["tests"][0]
    series = [
        each | {"series": each["series"].replace('"billing"', json.dumps(name)).replace(json.dumps(JOB), json.dumps(url))}
        for each in case["input_series"]
    ]
    check = next(each for each in case["alert_rule_test"] if each.get("exp_alerts"))
    for alert in check["exp_alerts"]:
        texts = alert["exp_annotations"]
        alert["exp_labels"]["group"] = name
        texts["summary"] = re.sub(r"\bbilling\b", lambda _: cleaned(name), texts["summary"])
        texts["description"] = texts["description"].replace(COMMAND, command_for(name, url))
    return {"interval": case["interval"], "input_series": series, "alert_rule_test": [check]}


@pytest.mark.programs
def test_names_in_an_alert_can_neither_leave_their_quotes_nor_make_a_line(tmp_path: Path) -> None:
    cases = {path.stem: [firing(path, name) for name in NAMES] for path in GROUP_ALERTS}
    assert all(COMMAND not in str(case["alert_rule_test"]) for of_alert in cases.values() for case in of_alert)
    assert len(cases) == 8
    passes(cases, tmp_path)


@pytest.mark.programs
@each_row("name", ["late", "a b"])
def test_a_command_that_is_copied_from_an_alert_runs_as_it_is_printed(name: str, tmp_path: Path) -> None:
    with job(GROUPS) as url:
        for path in GROUP_ALERTS:
            case = firing(path, name, url)
            passes({path.stem: [case]}, tmp_path)
            (check,) = case["alert_rule_test"]
            printed = [line for line in check["exp_alerts"][0]["exp_annotations"]["description"].splitlines() if "segtail why" in line]
            program, *arguments = shlex.split(printed[0].removeprefix("- "))
            done = run_command(*arguments)
            assert (program, done.returncode) == ("segtail", 3), done.stderr
            assert done.stdout.partition(":")[0].strip('"') == name


@pytest.mark.programs
def test_an_address_that_means_more_to_a_shell_is_not_printed(tmp_path: Path) -> None:
    path = GROUP_ALERTS[0]
    urls = ("http://a'; rm -rf ~; '", "http://$(id)", "http://[::1]:9712", "")
    passes({path.stem: [firing(path, "late", each) for each in urls]}, tmp_path)


@pytest.mark.programs
@each_row("which", ["fires two minutes", "it says when"])
def test_a_transactional_id_can_neither_leave_its_quotes_nor_make_a_line(which: str, tmp_path: Path) -> None:
    of_page = Commands(server="<host:port>" if which == "it says when" else "kafka-1:9092")
    cases = []
    for name in (*NAMES, "redacted-" + "0" * 20):
        (case,) = (each for each in cases_of("TransactionStuck")["tests"] if each["name"].startswith(which))
        check = next(each for each in case["alert_rule_test"] if each.get("exp_alerts"))
        series = [each | {"series": each["series"].replace('"billing-eu"', json.dumps(name))} for each in case["input_series"]]
        texts = check["exp_alerts"][0]["exp_annotations"]
        texts["description"] = "\n".join(_for_id(name, texts["description"].split("\n"), of_page))
        cases.append({"interval": case["interval"], "input_series": series, "alert_rule_test": [check]})
    passes({"TransactionStuck": cases}, tmp_path)


def _for_id(name: str, lines: list[str], of_page: Commands) -> Iterator[str]:
    """What the alert says of a transaction of another transactional.id: its commands, if there are any, are those of the page."""
    quoted = name.replace("'", "'\\''")
    commands = {
        "--transactional-id": of_page.describe_transaction(name).line,
        "--transactionalId": of_page.terminate(name).line,
    }
    printed = commands["--transactional-id"] and not name.startswith("redacted-")
    for line in lines:
        if not line.endswith("'billing-eu'"):
            if printed or not line.startswith("  Only"):
                yield line.replace("billing-eu", cleaned(name))
        elif printed:
            before, option_of, _ = line.rsplit(" ", 2)
            command = f"{before} {option_of}{'=' if name.startswith('-') else ' '}'{quoted}'"
            assert shlex.split(command) == shlex.split(commands[option_of])
            yield command


@each_row("name", NAMES)
def test_an_alert_has_the_command_of_the_page_or_says_why_there_is_none(name: str) -> None:
    of_page = Commands(asked=option("--job", JOB)).why(name).line
    of_alert = "" if command_for(name) == REFUSED else command_for(name).removeprefix("- ")
    assert shlex.split(of_alert) == shlex.split(of_page)


@each_row("path", GROUP_ALERTS)
def test_every_alert_of_a_group_has_its_command_last(path: Path) -> None:
    (group,) = yaml.safe_load(path.read_text())["groups"]
    assert REFUSED in group["rules"][0]["annotations"]["description"]


def test_no_alert_prints_a_name_that_a_client_chose_as_it_is() -> None:
    printed = re.compile(r"\{\{-? (?:or )?(?:\$labels|\.Labels)\.(?:group|groups|transactional_id)(?: \"[^\"]*\")? -?\}\}")
    assert {path.stem: found for path in (CONF / "alerts").glob("*.yaml") if (found := printed.findall(path.read_text()))} == {}


SERVER = "kafka-1:9092"
MIXED = {
    f'segtail_{name}{{job="segtail",instance="{instance}",{label}="{value}"}}': "1x10000"
    for instance, cluster, server, url in (("a", "one", SERVER, JOB), ("b", "two", "kafka-9:9092", "http://kafka-9:9712"))
    for name, label, value in (
        ("bootstrap_info", "bootstrap_server", server),
        ("page_info", "url", url),
        ("broker_info", "cluster_id", cluster),
    )
}
"""What two clusters under one job label export of their addresses."""


@pytest.mark.programs
def test_where_clusters_share_a_job_label_no_command_has_an_address_that_may_be_the_other_s(tmp_path: Path) -> None:
    cases = {}
    for path in sorted((CONF / "alerts").glob("*.yaml")):
        if re.search("segtail_(bootstrap|page)_info", path.read_text()):
            tests = cases_of(path.stem)["tests"]
            case = next(each for each in tests if any(check.get("exp_alerts") for check in each["alert_rule_test"]))
            check = next(each for each in case["alert_rule_test"] if each.get("exp_alerts"))
            for alert in check["exp_alerts"]:
                texts = alert["exp_annotations"]
                texts["description"] = texts["description"].replace(f"'{JOB}'", "<http://host:port>").replace(SERVER, "<host:port>")
            own = [each for each in case["input_series"] if not re.match("segtail_(bootstrap|page)_info", each["series"])]
            series = [*own, *({"series": name, "values": values} for name, values in MIXED.items())]
            cases[path.stem] = [{"interval": case["interval"], "input_series": series, "alert_rule_test": [check]}]
    assert len(cases) > 15
    passes(cases, tmp_path)
