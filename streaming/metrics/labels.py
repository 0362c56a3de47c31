"""How labels are written in the exposition formats."""


def escape(value: str) -> str:
    """A label value as written between the quotes; the same in the text format 0.0.4 and in OpenMetrics 1.0."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def labels(**values: str) -> str:
    """Labels without the braces, in the order given: ``broker="1",topic="orders"``."""
    return ",".join(f'{name}="{escape(value)}"' for name, value in values.items())
