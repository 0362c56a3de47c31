"""``python -m streaming.cli``: the command, if only Python is at hand and not its script folder, for example in a parent process."""

from streaming.cli.app import main

main()
