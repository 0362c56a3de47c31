"""Names that clients chose in the texts of alerts: what is copied from there does one thing in a shell, and no name makes up a line."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from streaming.cluster.verdicts.commands import Commands
from streaming.common.short_names import short_name
from tests.alerts.rendering import CONF
from tests.alerts.test_rules import TESTS, _run
from tests.tables import each_row

GROUP_ALERTS = sorted((CONF / "alerts").glob("Group*.yaml"))
COMMAND = "- segtail why 'billing'"
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


def command_for(name: str) -> str:
    if not name.isprintable() or len(name) > 1000:
        return REFUSED
    quoted = name.replace("'", "'\\''")
    return f"- segtail why {'-- ' if name.startswith('-') else ''}'{quoted}'"


def texts_of(path: Path) -> dict[str, Any]:
    """The tests of an alert, all values as they are written: ``0x60`` is no number for promtool."""
    read: dict[str, Any] = yaml.load((TESTS / path.name).read_text(), yaml.BaseLoader)
    return read


def firing(path: Path, name: str) -> dict[str, Any]:
    """The first case of an alert's tests, up to where it fires, for a group of another name."""
    case = texts_of(path)["tests"][0]
    series = [each | {"series": each["series"].replace('"billing"', json.dumps(name))} for each in case["input_series"]]
    check = next(each for each in case["alert_rule_test"] if each.get("exp_alerts"))
    for alert in check["exp_alerts"]:
        texts = alert["exp_annotations"]
        alert["exp_labels"]["group"] = name
        texts["summary"] = re.sub(r"\bbilling\b", lambda _: cleaned(name), texts["summary"])
        texts["description"] = texts["description"].replace(COMMAND, command_for(name))
    return {"interval": case["interval"], "input_series": series, "alert_rule_test": [check]}


@pytest.mark.programs
def test_names_in_an_alert_can_neither_leave_their_quotes_nor_make_a_line(tmp_path: Path) -> None:
    files = []
    for path in GROUP_ALERTS:
        cases = [firing(path, name) for name in NAMES]
        assert all(COMMAND not in str(case["alert_rule_test"]) for case in cases)
        document = texts_of(path)
        document |= {"rule_files": [str((TESTS / each).resolve()) for each in document["rule_files"]], "tests": cases}
        files.append(tmp_path / path.name)
        files[-1].write_text(yaml.safe_dump(document))
    assert len(files) == 5
    _run("promtool", "test", "rules", *files)


@each_row("name", NAMES)
def test_an_alert_has_the_command_of_the_page_or_says_why_there_is_none(name: str) -> None:
    of_page = Commands().why(name).line
    of_alert = "" if command_for(name) == REFUSED else command_for(name).removeprefix("- ")
    assert shlex.split(of_alert) == shlex.split(of_page)


@each_row("path", GROUP_ALERTS)
def test_every_alert_of_a_group_has_its_command_last(path: Path) -> None:
    (group,) = yaml.safe_load(path.read_text())["groups"]
    assert REFUSED in group["rules"][0]["annotations"]["description"]


def test_no_alert_prints_a_name_that_a_client_chose_as_it_is() -> None:
    printed = re.compile(r"\{\{-? (?:or )?(?:\$labels|\.Labels)\.(?:group|groups|transactional_id)(?: \"[^\"]*\")? -?\}\}")
    assert {path.stem: found for path in (CONF / "alerts").glob("*.yaml") if (found := printed.findall(path.read_text()))} == {}
