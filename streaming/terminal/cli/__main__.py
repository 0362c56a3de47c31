"""``python -m streaming.terminal.cli``: the command, if only Python is at hand and not its script folder."""

from streaming.terminal.cli.app import main

main()
