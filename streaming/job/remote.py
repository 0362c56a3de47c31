"""Agents elsewhere: the settings that concern them, and whether these fit together, before anything is started."""

from streaming.client.agent_client import ClientFiles, credentials
from streaming.errors import UsageError
from streaming.settings import Settings
from streaming.targets import Scheme, is_loopback

_FILES = ("agent_ca", "agent_cert", "agent_key", "agent_token_file")


def file_options(settings: Settings) -> dict[str, str]:
    """The files of certificates and the token as options of the data source: their paths, which may be visible, never their content."""
    given = {name: getattr(settings, name) for name in _FILES}
    return {name: str(path.absolute()) for name, path in given.items() if path is not None}


def check_agents(settings: Settings) -> None:
    """Refuse settings that could never work, or would send a token unencrypted.

    Raises:
        UsageError: a file cannot be used, TLS has no CA, or a token would leave this machine without TLS.
    """
    files = ClientFiles(ca=settings.agent_ca, cert=settings.agent_cert, key=settings.agent_key, token_file=settings.agent_token_file)
    credentials(files)
    for target in settings.agents:
        encrypted = target.scheme is Scheme.TLS or (target.scheme is Scheme.NAME and files.ca is not None)
        if encrypted and files.ca is None:
            raise UsageError(f"--agents {target}: TLS needs the certificates of its CA: name --agent-ca (such as the machine's own bundle)")
        if not encrypted and files.token_file is not None and not is_loopback(target.address.host):
            raise UsageError(f"--agents {target}: the token is not sent without TLS: name --agent-ca, and write grpc+tls:// for one agent")
