"""The command ``segtail``: finds the subcommand, and converts errors to a message and an exit status."""

import importlib
import os
import sys
import threading
from difflib import get_close_matches

import click
from click.shell_completion import CompletionItem

from streaming import __version__
from streaming.common.units import plain_lines
from streaming.errors import SegtailError
from streaming.terminal.cli import spark_extra

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in a shell (128 + SIGINT); ``run`` ends by itself and returns 0."""

COMMANDS = {
    "advise": "Say which codec, batch size and linger would make topics smaller, and by how much, measured on samples.",
    "agent": "Watch the log dirs of this host and serve appends to jobs on other hosts.",
    "changes": "List what admins did: topics, partitions, configurations, reassignments, features and brokers.",
    "completion": "Print the script by which bash, zsh or fish completes commands and options.",
    "config": "Print the configuration in effect, with a description of every option.",
    "count": "Count the records of topics as consumers would get them: without markers, aborted and compacted-away ones.",
    "demo": "Run the job on a simulated broker, or on log dirs, and open top on it.",
    "disk": "Show what fills the disk, what retention will free of it and when, and when it is full.",
    "doctor": "Look for what keeps segtail from working here, and say which command mends it.",
    "dump": "Show the content of Kafka's files: batches, records, indexes, snapshots, checkpoints.",
    "export": "Write alerts, rules, dashboards, runbooks or examples into a folder, with the addresses of this installation.",
    "groups": "Show what consumer groups have left to read, exactly, and which of them need attention.",
    "mcp": "Answer assistants by the Model Context Protocol, with what the commands say.",
    "page": "Serve the page of log dirs: what a job shows in a browser, from one reading, without Spark.",
    "restart-check": "Say whether a broker may be restarted now, and what that costs; it restarts nothing.",
    "retention": "Show what each partition keeps and for how long, what Kafka is about to delete, and what prevents that.",
    "run": "Watch log dirs, start the Spark job and serve /metrics.",
    "runbook": "Print what to do about an alert, by its name, or the list of all runbooks.",
    "top": "Show what is wrong and how fresh that is, and lists of problems, partitions, transactions, retention and groups.",
    "topics": "Show what each topic costs and who uses it; which are not used, and which have many partitions for their bytes.",
    "transactions": "Show the open transactions on disk: their start, their producer, and which of them no coordinator will ever end.",
    "warm-up": "Make an archive of Spark's classes, once: with it every job on this machine starts with half of the CPU of a JVM.",
    "why": "Say why consumer groups do not go on, and what to do.",
}
"""The description of each command. It is not in the commands' files, so that ``--help`` imports none of them: some import Spark."""

_MODULES = {"export": "export_files", "mcp": "assistants", "restart-check": "restarts", "warm-up": "warm_up"}
"""The modules of commands whose names another module has, or none can have."""

_EPILOG = """\
Options come from the command line, else from SEGTAIL_<NAME> in the environment, else from the file given by --config, else from the
defaults that `segtail config` prints.

Exit status: 0 done, or nothing found; 1 failed; 2 not possible as asked (an option, a log dir, a port, a checkpoint, Java); 3 found, and 4
not everything could be read, of commands that look for something; 130 interrupted.
"""


def main() -> None:
    """Run the command line in a process that is its own, and exit."""
    if spark_extra.PANDAS_FOR.isdisjoint(sys.argv[1:2]):
        spark_extra.leave_out_pandas()
    if spark_extra.COMMANDS.isdisjoint(sys.argv[1:2]):
        # Arrow's own pool takes 5 MB at its first array, and keeps what a large answer needed as long as no other comes
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it looks for some among the files of all packages
    run()


def run() -> None:
    """Run the command line and exit; the process may belong to another program, which called this."""
    try:
        status = segtail.main(prog_name="segtail", standalone_mode=False)
    except SegtailError as error:
        click.echo(f"segtail: error: {plain_lines(str(error))}", err=True)
        sys.exit(error.exit_status)
    except click.ClickException as error:
        _with_setting(error).show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(INTERRUPTED)
    sys.exit(status if isinstance(status, int) else 0)


class CommandGroup(click.Group):
    """Loads the file of a command when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the file of one command; None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"streaming.terminal.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command without importing any; the options of segtail itself as click does."""
        names = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named; a name that is none is answered with the nearest one."""
        near = [] if args[0] in COMMANDS else get_close_matches(args[0], COMMANDS, n=1)
        if near:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{near[0]}'?")
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _refuse_repeated(click.Context(command, info_name=name, parent=ctx), rest)
        return name, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _refuse_repeated(context: click.Context, words: list[str]) -> None:
    """Refuse an option with one value that is given twice, of which click takes the last without a word."""
    try:
        _, _, given = context.command.make_parser(context).parse_args(list(words))
    except click.UsageError:  # the command reports it
        return
    for each in given:
        single = isinstance(each, click.Option) and not (each.multiple or each.is_flag or each.count)
        if single and given.count(each) > 1:
            raise click.UsageError(
                f"{max(each.opts, key=len)} is given {given.count(each)} times, and takes one value: give it once.", context
            )


def _end_with_parent() -> None:
    os.read(0, 1)
    os._exit(INTERRUPTED)


def _with_setting(error: click.ClickException) -> click.ClickException:
    """The error; of an option that is none of the command's but a setting, it says how that is given."""
    from streaming.common.settings import OPTIONS

    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    name = error.option_name.lstrip("-").replace("-", "_")
    if name not in OPTIONS or not any("--set" in each.opts for each in error.ctx.command.params):
        return error
    return click.UsageError(f"No such option '{error.option_name}'. Give this setting as --set {name}=VALUE.", error.ctx)


@click.command(cls=CommandGroup, epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(__version__, prog_name="segtail", message="%(prog)s %(version)s")
@click.option("--child", is_flag=True, hidden=True, help="End at once when standard input does; for what only reads.")
def segtail(child: bool) -> None:
    """Watches Kafka's log segments on the broker's disk and exports what is appended, partition by partition, as Prometheus metrics.

    It opens Kafka's files read-only and needs no Kafka client, no ACLs and no JMX.
    """
    if child:
        threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
