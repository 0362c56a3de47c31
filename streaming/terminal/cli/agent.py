"""``segtail agent``: watch the log dirs of this host and serve what is appended."""

import platform
from datetime import timedelta
from pathlib import Path

import click

from streaming.common.settings import Settings
from streaming.common.units import Address, parse_duration
from streaming.errors import UsageError, quoted
from streaming.rules.broker_process import PATIENCE
from streaming.terminal.cli.options import follow_log_level, with_settings

DEFAULT_LISTEN = Address("127.0.0.1", 8815)
OFF = "off"


@click.command("agent")
@with_settings(
    "log_dirs",
    "tls_cert",
    "tls_key",
    "tls_client_ca",
    "token_file",
    "metrics_listen",
    "web_config",
    "read_rate",
    "groups_limit",
    "ladder_rate",
    "scrub_rate",
    "scrub_every",
    "redact_ids",
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep in this directory what costs a scan of closed segments to know again after a restart. It may be deleted at any time. "
    "Without it the agent writes nothing.",
)
@click.option(
    "--listen", default=str(DEFAULT_LISTEN), show_default=True, metavar="HOST:PORT", help="Address for jobs. Port 0 takes any free port."
)
@click.option(
    "--name", default=platform.node(), show_default="the host's", metavar="NAME", help="Its name in the metrics and in checkpoints."
)
@click.option(
    "--let-go-after",
    default=OFF,
    show_default=True,
    metavar="DURATION",
    help=f"End, with exit status 0, once no broker has held .lock of its log dirs for so long, or {PATIENCE} times as long where "
    "none was seen to let go of it: a volume of ReadWriteOnce can follow its broker to another node then. "
    f"{OFF} or 0s: it does not end by itself.",
)
@click.option("--child", is_flag=True, hidden=True, help="Print the address, and end when standard input does.")
def command(settings: Settings, cache: Path | None, listen: str, name: str, let_go_after: str, child: bool) -> None:
    """Watch the log dirs of this host and serve what is appended to jobs, until SIGTERM or Ctrl-C.

    It reads Kafka's files, and never writes or locks them. Without --tls-cert and a way to authenticate its jobs (--token-file or
    --tls-client-ca), it listens on loopback addresses only. Changed certificates and tokens are used while it runs.
    """
    follow_log_level()
    from streaming.broker.agent.parts import AgentOptions
    from streaming.broker.agent.process import serve
    from streaming.broker.agent.security import ServerFiles

    serve(
        AgentOptions(
            name=_checked(name),
            log_dirs=settings.log_dirs,
            cache=cache,
            listen=_address(listen),
            files=ServerFiles(
                tls_cert=settings.tls_cert,
                tls_key=settings.tls_key,
                tls_client_ca=settings.tls_client_ca,
                token_file=settings.token_file,
            ),
            metrics_listen=settings.metrics_listen,
            web_config=settings.web_config,
            read_rate=settings.read_rate,
            groups_limit=settings.groups_limit,
            ladder_rate=settings.ladder_rate,
            scrub_rate=settings.scrub_rate,
            scrub_every_ms=int(settings.scrub_every.total_seconds() * 1000),
            producers_limit=settings.producers_limit,
            redact_ids=settings.redact_ids,
            child=child,
            let_go_after_ms=_milliseconds(let_go_after),
            limits_given=bool(settings.server_properties or settings.broker_config),
        )
    )


def _checked(name: str) -> str:
    """A name that jobs take: else the agent would run, and each job refuse it. A host may have no name, or one that is none."""
    from streaming.broker.protocol.json_values import NAME

    if not NAME.least <= len(name) <= NAME.most or not name.isprintable():
        raise UsageError(f"--name {quoted(name)}: write a name of {NAME.least} to {NAME.most} characters, none of them a control character")
    return name


def _address(listen: str) -> Address:
    try:
        return Address.parse(listen)
    except ValueError as error:
        raise UsageError(f"--listen {listen}: {error}; write for example {DEFAULT_LISTEN}") from error


def _milliseconds(let_go_after: str) -> int:
    """How long no broker is there until it ends; 0 if it does not end by itself."""
    if let_go_after == OFF:
        return 0
    try:
        return parse_duration(let_go_after) // timedelta(milliseconds=1)
    except ValueError as error:
        raise UsageError(f"--let-go-after {quoted(let_go_after)}: {error}, or {OFF} for an agent that does not end by itself") from error
