"""References within one JSON Schema: what they name, and whether they go round in a circle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 100
"""Schemas within schemas, and references that lead to references."""
NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
"""Keywords whose value has a schema under each name."""
SEVERAL = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
ONE = frozenset(
    [
        *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *("additionalItems", "unevaluatedProperties", "unevaluatedItems"),
    ]
)
DEFINITIONS = ("$defs", "definitions")
Schema = Mapping[str, Any]


class UnfitSchemaError(Exception):
    """A dialect cannot hold a schema, whatever is moved."""


def names_in(value: Any) -> list[str]:
    """The names in a list; none where it is no list."""
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []


def properties_of(schema: Schema) -> Schema:
    """The properties of an object; none where they are no object themselves."""
    value = schema.get("properties")
    return value if isinstance(value, Mapping) else {}


class SchemaReferences:
    """What the references within one schema name."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def resolve(self, schema: Schema) -> Schema:
        """A schema with what its reference names in the reference's place. Raises `UnfitSchemaError`."""
        seen: set[str] = set()
        while isinstance(reference := schema.get("$ref"), str):
            target = self.find(reference)
            if reference in seen or target is None:
                raise UnfitSchemaError
            seen.add(reference)
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def find(self, reference: str) -> Schema | None:
        """What a local reference names."""
        at: Any = self._root
        if reference != "#" and not reference.startswith("#/"):
            return None
        for step in reference[2:].split("/") if reference != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            at = at.get(name) if isinstance(at, Mapping) else None
        return at if isinstance(at, Mapping) else None

    def refuse_cycles(self, *, only_required: bool) -> None:
        """Raise `UnfitSchemaError` for references to other documents and in circles (of required properties alone)."""
        done: set[str] = set()
        open_: dict[str, None] = {}

        def visit(schema: Any) -> None:
            for reference in _references(schema, only_required=only_required):
                target = self.find(reference)
                if target is None or reference in open_ or len(open_) > MAX_DEPTH:
                    raise UnfitSchemaError
                if reference not in done:
                    open_[reference] = None
                    visit(target)
                    del open_[reference]
                    done.add(reference)

        visit({key: value for key, value in self._root.items() if key not in DEFINITIONS})
        for name in (name for name in DEFINITIONS if isinstance(self._root.get(name), Mapping)):
            visit({"properties": self._root[name], "required": list(self._root[name])})


def _references(schema: Any, *, only_required: bool) -> Iterator[str]:
    """The references below a schema, not through definitions; only through required properties where asked."""
    waiting = [schema]
    while waiting:
        at = waiting.pop()
        if isinstance(at, list | tuple):
            waiting += at
        if not isinstance(at, Mapping):
            continue
        if isinstance(at.get("$ref"), str):
            yield at["$ref"]
        for key, value in at.items():
            if key in NAMED and key not in DEFINITIONS and isinstance(value, Mapping):
                needed = names_in(at.get("required"))
                waiting += [item for name, item in value.items() if not only_required or name in needed]
            elif key in SEVERAL or key in ONE:
                waiting.append(value)
