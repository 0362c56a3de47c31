"""``segtail mcp``: answer assistants by the Model Context Protocol, with what the commands print as JSON."""

import logging
import secrets
import signal
from pathlib import Path

import click

from streaming.broker.protocol.tokens import Token, read_tokens
from streaming.common.units import Address
from streaming.errors import UsageError, quoted
from streaming.terminal.cli.spark_extra import INSTALL

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("mcp", epilog="Exit status: 0 the client has ended it, 1 failed, 2 not possible as asked, 130 interrupted.")
@click.argument("paths", metavar="[PATH]...", nargs=-1)
@click.option("--log-dirs", metavar="DIR[,DIR...]", help="Log dirs, or directories with some, as other commands take them.")
@click.option("--job", metavar="URL", help="Ask the job with this address, http://HOST:PORT, instead of reading log dirs.")
@click.option("--server-properties", metavar="FILE[,FILE...]", help="The server.properties of the brokers, as other commands take them.")
@click.option("--listen", metavar="HOST:PORT", help="Answer by HTTP at this address of this machine, instead of on stdin and stdout.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=Path,
    help="With --listen: answer who sends the token in this file, instead of one that is printed.",
)
def command(
    paths: tuple[str, ...],
    log_dirs: str | None,
    job: str | None,
    server_properties: str | None,
    listen: str | None,
    token_file: Path | None,
) -> None:
    """Answer an assistant by the Model Context Protocol: problems, transactions, groups, retention, disks, restarts, changes, topics.

    Answers are those of the commands, with their evidence and doubts, and the command that gives them. Nothing is changed, and nothing is
    run but these commands; keys and values of records are in none. Without PATH and --job each looks for the job or the brokers of this
    machine.
    """
    given = {"--log-dirs": log_dirs, "--server-properties": server_properties}
    if job is not None and (paths or any(given.values())):
        raise UsageError("--job answers by its own log dirs: leave out PATH, --log-dirs and --server-properties")
    options = [word for name, value in given.items() if value for word in (name, value)]
    source = ["--job", job] if job is not None else [*options, *paths]
    host, _, port = (listen or "127.0.0.1:0").rpartition(":")
    if host not in _LOOPBACK or not port.isdecimal() or len(port) > 5 or int(port) >= 1 << 16:
        raise UsageError(f"--listen {quoted(listen or '')}: it is a port of this machine alone, such as 127.0.0.1:9713")
    if token_file is not None and listen is None:
        raise UsageError("--token-file is for --listen: on stdin and stdout nobody else asks")
    token = Token("", secrets.token_hex(32).encode()) if token_file is None else read_tokens(token_file, "--token-file")[0]
    try:
        from streaming.terminal.cli.assistant_tools import server_of

        server = server_of(source, token)
    except ModuleNotFoundError as error:
        extra = INSTALL.replace("[spark]", "[mcp]")
        why = f"`segtail mcp` needs mcp, which is not installed: {extra}, or in a checkout pip install '.[mcp]'"
        raise UsageError(why) from error
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of a command that ends later than the server which has stopped it
    if listen is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # else it would wait for the next line of stdin, and the client may have none
        try:
            server.run("stdio")
        except* BrokenPipeError:  # the client is gone, and does not wait for an answer
            pass
        return
    if token_file is None:
        click.echo(
            f"segtail: answers at http://{Address(host, int(port))}/mcp who sends the header Authorization: Bearer {token.secret.decode()}",
            err=True,
        )
    try:
        server.serve(host, int(port))
    except SystemExit as error:  # the reason stands above it
        raise UsageError(f"cannot listen on {listen}: stop the process that uses it, or choose another port with --listen") from error
