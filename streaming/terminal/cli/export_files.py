"""``segtail export``: write alerts, rules, dashboards, runbooks or examples into a folder, with the addresses of this installation."""

import re
from pathlib import Path

import click

from streaming.common.units import format_count, format_list
from streaming.common.whole_files import write_whole
from streaming.errors import UsageError, quoted

_KINDS = ("alerts", "rules", "dashboards", "runbooks", "examples")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9\[][A-Za-z0-9._~:/%\[\]-]*")
_NAMED = 5
_OPTIONS = {"page": "--url", "runbooks": "--runbooks", "grafana": "--grafana"}


def _address(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str:
    if value is not None and not _ADDRESS.fullmatch(value):
        raise click.BadParameter("it is not http://HOST[:PORT][/PATH], or https, without spaces, quotes or braces")
    return (value or "").rstrip("/")


@click.command("export")
@click.argument("kind", type=click.Choice(_KINDS))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")
@click.option("--as", "tool", metavar="TOOL", help="With rules: those that serve another tool's names for a while, as kafka_exporter.")
@click.option("--url", metavar="URL", callback=_address, help="The page of one cluster's job, for links from alerts and runbooks.")
@click.option("--runbooks", metavar="URL", callback=_address, help="Where the files of `export runbooks` are: NAME.md is put behind it.")
@click.option("--grafana", metavar="URL", callback=_address, help="The Grafana that has the dashboards, for links from alerts.")
@click.option("--force", is_flag=True, help="Overwrite files that differ.")
def command(kind: str, folder: Path, tool: str | None, url: str, runbooks: str, grafana: str, force: bool) -> None:
    """Write the alerts, rules, dashboards, runbooks or examples of this version into DIR, for Prometheus, Grafana and people to read.

    --url is one fixed address, to which the alerts of every cluster lead: for several clusters under one Prometheus leave it out, and give
    --runbooks. An option that changes nothing in the files of a kind is an error.

    With addresses, the runbook_url of an alert is absolute, its annotations page and dashboard lead to what it is about, and dashboards
    lead to the runbooks. The rules are those that alerts and dashboards need, or with --as those of another tool's names. Runbooks are
    Markdown, a file for each alert, to be put where --runbooks says. The examples are of Prometheus, Alertmanager, KEDA and an
    OpenTelemetry collector. Files that are there and differ are kept, and then nothing is written.
    """
    from streaming.shipped.addresses import HELD, Addresses, with_addresses
    from streaming.shipped.shipped_files import ShippedKind, shipped

    chosen = ShippedKind(kind)
    addresses = Addresses(page=url, runbooks=runbooks, grafana=grafana)
    unused = [option for field, option in _OPTIONS.items() if getattr(addresses, field) and field not in HELD.get(chosen, ())]
    if unused:
        raise UsageError(f"{format_list(unused, _NAMED)} would change nothing in {kind}: leave it out")
    if tool is None:
        wanted = shipped(chosen)
    elif chosen is not ShippedKind.RULES:
        raise UsageError(f"--as goes with rules, and not with {kind}")
    else:
        every = shipped(ShippedKind.MIGRATION)
        wanted = tuple(each for each in every if each.stem == tool)
        if not wanted:
            raise UsageError(f"--as {quoted(tool)}: there are {', '.join(each.stem for each in every)}")
    texts = {folder / each.name: with_addresses(chosen, each, addresses).encode() for each in wanted}
    written = _write(folder, texts, force=force)
    others = f", {format_count(len(texts) - written, 'file')} there already" if written < len(texts) else ""
    click.echo(f"{format_count(written, 'file')} written to {folder}{others}")


def _write(folder: Path, texts: dict[Path, bytes], *, force: bool) -> int:
    """Write the files that differ, all or none. Returns how many."""
    try:
        present = {path: path.read_bytes() for path in texts if path.exists()}
        differing = [path.name for path, old in present.items() if old != texts[path]]
        if differing and not force:
            named = format_list(differing, _NAMED)
            raise UsageError(f"{folder} has other files of these names: {named}; --force overwrites them")
        folder.mkdir(parents=True, exist_ok=True)
        new = [path for path, text in texts.items() if present.get(path) != text]
        for path in new:
            write_whole(path, texts[path], lasting=False, mode=0o666)
    except OSError as error:
        raise UsageError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    return len(new)
