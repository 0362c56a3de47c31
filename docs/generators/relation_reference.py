"""Writes the tables of columns in docs/spark.md: ``python -m docs.generators.relation_reference docs/spark.md``."""

import sys
from pathlib import Path

from pyspark.sql.types import ArrayType, StructType

from streaming.spark.source.relations import RELATIONS, RelationColumn

MARK = "<!-- What follows is made from streaming/spark/source/relations.py by `make docs`. -->"


def reference(document: str) -> str:
    """The document with its lists made anew; what stands before the mark stays."""
    before, mark, _ = document.partition(MARK)
    if not mark:
        raise ValueError(f"the document has no line {MARK}")
    lines = [before + MARK, ""]
    for relation, columns in RELATIONS.items():
        lines += [f"### {relation}", "", *map(_line, columns), ""]
    return "\n".join(lines)


def _line(column: RelationColumn) -> str:
    return f"- `{column.name}` {_type(column)}{column.what and f': {column.what}'}"


def _type(column: RelationColumn) -> str:
    kind = column.type
    if isinstance(kind, ArrayType) and isinstance(kind.elementType, StructType):
        fields = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in kind.elementType.fields)
        return f"array of struct: {fields}"
    return kind.simpleString()


if __name__ == "__main__":
    sys.stdout.write(reference(Path(sys.argv[1]).read_text()))
