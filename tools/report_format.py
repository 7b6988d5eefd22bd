"""The format of a report's file: its JSON Schema, and the same as a table to read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PATH = Path(__file__).parents[1] / "attncourse" / "grading" / "report.schema.json"
HEAD = "| field | type | meaning |\n| --- | --- | --- |\n"


def report_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of ``reports/ASSIGNMENT/STUDENT.json``."""
    return json.loads(PATH.read_text(encoding="utf-8"))


def markdown() -> str:
    """The schema as a table in Markdown, for the instructor's guide."""
    schema = report_schema()
    rows = (
        f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in fields(schema, schema)
    )
    return HEAD + "".join(rows)


def fields(schema: dict[str, Any], part: dict[str, Any], path: str = "") -> Iterator[tuple]:
    """Path, type and meaning of every field in a part of a schema, depth first."""
    for name, field in part.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        yield here, type_of(field), field["description"].replace("|", "\\|")
        items, values = field.get("items", {}), field.get("additionalProperties")
        if "$ref" in items:
            yield from fields(schema, part_of(schema, items), f"{here}[]")
        if isinstance(values, dict):
            yield from fields(schema, part_of(schema, values), f"{here}.NAME")


def part_of(schema: dict[str, Any], reference: dict[str, str]) -> dict[str, Any]:
    """The definition that a reference points to."""
    return schema["$defs"][reference["$ref"].rpartition("/")[2]]


def type_of(field: dict[str, Any]) -> str:
    """A field's type in words."""
    if "const" in field:
        return f"`{field['const']}`"
    kinds = field.get("type", "string")
    said = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if kinds != "array":
        return said
    items = field["items"]
    kind = "pair" if items.get("maxItems") == 2 else items.get("type", "object")
    return f"array of {kind}s"


if __name__ == "__main__":
    print(markdown(), end="")
