"""Writes the tables of columns in docs/spark.md: ``python -m docs.generators.relation_reference docs/spark.md``."""

import sys
from pathlib import Path

from pyspark.sql.types import ArrayType, StructType

from streaming.spark.source.relations import RELATIONS, Relation, RelationColumn

MARK = "<!-- What follows is made from streaming/spark/source/relations.py by `make docs`. -->"


def reference(document: str) -> str:
    """The document with its lists made anew; what stands before the mark stays."""
    before, mark, _ = document.partition(MARK)
    if not mark:
        raise ValueError(f"the document has no line {MARK}")
    others = [columns for relation, columns in RELATIONS.items() if relation != Relation.RECORDS]
    common = [each for each in others[0] if all(each in columns for columns in others)]
    lines = [before + MARK, "", "### All but records", "", *map(_line, common), ""]
    for relation, columns in RELATIONS.items():
        own = columns if relation == Relation.RECORDS else [each for each in columns if each not in common]
        lines += [f"### {relation}", "", *map(_line, own), ""]
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
