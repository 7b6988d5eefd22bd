"""The format of a report's file: its JSON Schema, and the same as a table to read.

python tools/report_format.py            the table, for the instructors' guide
python tools/report_format.py --write    the schema, from the annotations of the report's classes
"""

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, NotRequired, get_args, get_origin, get_type_hints

from attncourse.grading.report import (
    SCHEMA,
    CellResult,
    Report,
    ReportedCriterion,
    ReportedLimit,
    ReportedVerdict,
)

PATH = Path(__file__).parents[1] / "attncourse" / "grading" / "report.schema.json"
TABLE_HEAD = "| field | type | meaning |\n| --- | --- | --- |\n"
RECORD_TITLES = {
    CellResult: "cell",
    ReportedVerdict: "verdict",
    ReportedCriterion: "criterion",
    ReportedLimit: "limit",
}
TYPES = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}
VERSION = "The version of this format. It grows whenever a field changes its meaning or goes."


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``reports/ASSIGNMENT/STUDENT.json``."""
    report = object_schema(Report)
    version = {"schema": {"description": VERSION, "const": SCHEMA}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:attncourse:report:{SCHEMA}",
        "title": "Report",
        **report,
        "required": [*version, *report["required"]],
        "properties": version | report["properties"],
        "$defs": {name: object_schema(kind) for kind, name in RECORD_TITLES.items()},
    }


def object_schema(kind: type) -> dict[str, Any]:
    """Return the schema of a class: of a dataclass all fields, of a typed dictionary those it has.

    A typed dictionary may have more, in reports that another version wrote.
    """
    hints = get_type_hints(kind, include_extras=True)
    schema: dict[str, Any] = {"description": (kind.__doc__ or "").splitlines()[0], "type": "object"}
    if dataclasses.is_dataclass(kind):
        schema["additionalProperties"] = False
    schema["required"] = [name for name, hint in hints.items() if get_origin(hint) != NotRequired]
    schema["properties"] = {name: field_schema(hint) for name, hint in hints.items()}
    return schema


def field_schema(hint: Any) -> dict[str, Any]:
    """Return the schema of a field, with what its annotation says of it."""
    if get_origin(hint) is NotRequired:
        (hint,) = get_args(hint)
    kind, description, *limits = get_args(hint)
    schema = {"description": description} | type_schema(kind)
    for limit in limits:
        schema |= limit
    if "enum" in schema:
        del schema["type"]
    return schema


def type_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a type without its meaning."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:  # plain data of this form
        return type_schema(parts[1])
    if kind in RECORD_TITLES:
        return {"$ref": f"#/$defs/{RECORD_TITLES[kind]}"}
    if kind in TYPES:
        return {"type": TYPES[kind]}
    if origin is dict:
        return {"type": "object", "additionalProperties": type_schema(parts[1])}
    if origin is list or (origin is tuple and parts[1:] == (...,)):
        return {"type": "array", "items": type_schema(parts[0])}
    if origin is tuple:
        length = {"minItems": len(parts), "maxItems": len(parts)}
        return {"type": "array", "items": type_schema(parts[0]), **length}
    return {"type": [TYPES[part] for part in parts]}  # one of several


def write_schema() -> None:
    """Write the schema for those who read reports, and for what reads them here."""
    text = json.dumps(report_schema(), indent=2, ensure_ascii=False) + "\n"
    PATH.write_text(text, encoding="utf-8")


def markdown() -> str:
    """Return the schema as a table in Markdown, for the instructor's guide."""
    schema = report_schema()
    rows = (
        f"| `{path}` | {kind} | {meaning} |\n" for path, kind, meaning in fields(schema, schema)
    )
    return TABLE_HEAD + "".join(rows)


def fields(schema: dict[str, Any], part: dict[str, Any], path: str = "") -> Iterator[tuple]:
    """Yield path, type and meaning of every field in a part of a schema, depth first."""
    for name, field in part.get("properties", {}).items():
        field_path = f"{path}.{name}" if path else name
        yield field_path, type_of(field), field["description"].replace("|", "\\|")
        items, values = field.get("items", {}), field.get("additionalProperties")
        if "$ref" in items:
            yield from fields(schema, part_of(schema, items), f"{field_path}[]")
        if isinstance(values, dict):
            yield from fields(schema, part_of(schema, values), f"{field_path}.NAME")


def part_of(schema: dict[str, Any], reference: dict[str, str]) -> dict[str, Any]:
    """Return the definition that a reference points to."""
    return schema["$defs"][reference["$ref"].rpartition("/")[2]]


def type_of(field: dict[str, Any]) -> str:
    """Return a field's type in words."""
    if "const" in field:
        return f"`{field['const']}`"
    kinds = field.get("type", "string")
    type_words = " or ".join(kinds) if isinstance(kinds, list) else kinds
    if kinds != "array":
        return type_words
    items = field["items"]
    kind = "pair" if items.get("maxItems") == 2 else items.get("type", "object")
    return f"array of {kind}s"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_schema()
    else:
        print(markdown(), end="")
