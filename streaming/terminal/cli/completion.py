"""``segtail completion``: the script by which a shell completes segtail's commands and options."""

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script by which a shell completes commands, options and their values.

    For one session of bash: `source <(segtail completion bash)`. For every one, write it into a file that the shell reads: below
    ~/.local/share/bash-completion/completions/segtail for bash, in a folder of $fpath as _segtail for zsh, and below
    ~/.config/fish/completions/segtail.fish for fish.
    """
    completion = get_completion_class(shell)
    assert completion is not None
    made = completion(context.find_root().command, {}, "segtail", "_SEGTAIL_COMPLETE")
    click.echo(made.source_template % made.source_vars())  # source() starts a bash to learn its version
