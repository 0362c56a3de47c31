"""``python -m streaming.cli``: the command for whoever has a Python but not its script folder, such as a parent process."""

from streaming.cli.app import main

main()
