"""Some of a few words, with commas between them, on the command line."""

import click


class Words(click.ParamType[tuple[str, ...]]):
    """The words, each of which has to be one of those that there are."""

    name = "words"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: str | tuple[str, ...], param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The words of a text."""
        if isinstance(value, tuple):  # the default
            return value
        some = tuple(value.split(","))
        for word in some:
            if word not in self._words:
                self.fail(f'"{word}" is not one of {", ".join(self._words)}', param, ctx)
        return some
