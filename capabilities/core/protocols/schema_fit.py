"""Fit JSON Schemas to a vendor's dialect. Unsupported parts are moved into descriptions and reported as dropped.

A schema that the dialect accepts is returned as the same object, so that the payload and a cached prefix do not change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from capabilities.core.protocols.dialects import NO_CONSTRAINT, PHRASES, UNSUPPORTED_PATTERN, Dialect

# Maximum nesting depth of schemas, and maximum length of a chain of references.
MAX_DEPTH = 100
# Keywords whose value is an object that maps names to schemas.
SCHEMA_MAPS = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})
SCHEMA_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
SINGLE_SCHEMAS = frozenset(
    [
        *("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"),
        *("additionalItems", "unevaluatedProperties", "unevaluatedItems"),
    ]
)
DEFINITIONS = ("$defs", "definitions")
Schema = Mapping[str, Any]


class UnfitSchemaError(Exception):
    """A dialect cannot express a schema, even if some parts are moved into descriptions."""


def names_in(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | tuple) else []


def schema_properties(schema: Schema) -> Schema:
    value = schema.get("properties")
    return value if isinstance(value, Mapping) else {}


class SchemaReferences:
    """Resolves the references within a schema."""

    def __init__(self, root: Schema) -> None:
        self._root = root

    def resolve(self, schema: Schema) -> Schema:
        """Return a schema with its reference replaced with the target.

        Raise `UnfitSchemaError` if the target is missing, or if the references form a cycle.
        """
        followed: set[str] = set()
        while isinstance(reference := schema.get("$ref"), str):
            target = self.find(reference)
            if reference in followed or target is None:
                raise UnfitSchemaError
            followed.add(reference)
            schema = {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
        return schema

    def find(self, reference: str) -> Schema | None:
        """Return the target of a reference within the schema, or None."""
        at: Any = self._root
        if reference != "#" and not reference.startswith("#/"):
            return None
        for step in reference[2:].split("/") if reference != "#" else ():
            name = step.replace("~1", "/").replace("~0", "~")
            at = at.get(name) if isinstance(at, Mapping) else None
        return at if isinstance(at, Mapping) else None

    def refuse_cycles(self, *, only_required: bool) -> None:
        """Raise `UnfitSchemaError` for external references and cycles. `only_required` ignores optional properties."""
        checked: set[str] = set()
        in_progress: dict[str, None] = {}

        def visit(schema: Any) -> None:
            for reference in _references(schema, only_required=only_required):
                target = self.find(reference)
                if target is None or reference in in_progress or len(in_progress) > MAX_DEPTH:
                    raise UnfitSchemaError
                if reference not in checked:
                    in_progress[reference] = None
                    visit(target)
                    del in_progress[reference]
                    checked.add(reference)

        visit({key: value for key, value in self._root.items() if key not in DEFINITIONS})
        for name in (name for name in DEFINITIONS if isinstance(self._root.get(name), Mapping)):
            visit({"properties": self._root[name], "required": list(self._root[name])})


def _references(schema: Any, *, only_required: bool) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list | tuple):
            waiting += item
        if not isinstance(item, Mapping):
            continue
        if isinstance(item.get("$ref"), str):
            yield item["$ref"]
        for key, value in item.items():
            # Follow definitions only through references to them.
            if key in SCHEMA_MAPS and key not in DEFINITIONS and isinstance(value, Mapping):
                required_names = names_in(item.get("required"))
                waiting += [member for name, member in value.items() if not only_required or name in required_names]
            elif key in SCHEMA_LISTS or key in SINGLE_SCHEMAS:
                waiting.append(value)


# Maximum number of subschemas to visit, and maximum number of references to replace with their targets.
MAX_NODES, MAX_REPLACED = 5000, 100
ALTERNATIVES = ("anyOf", "oneOf", "allOf")
# Keywords that the root must not have if `object_root` is set.
NO_ROOT = (*ALTERNATIVES, "enum", "not")
Dropped = tuple[str, ...]


def fit_schema(schema: Schema, dialect: Dialect, path: str = "schema") -> tuple[Schema, Dropped]:
    """Return the schema in a dialect, and the paths of the parts moved into descriptions.

    Raise `UnfitSchemaError` if the dialect cannot express the schema.
    """
    if not dialect.object_root or not ("$ref" in schema or any(key in schema for key in NO_ROOT)):
        return _fit_all(schema, dialect, path)
    root, keys = _with_object_root(schema, dialect)
    fitted, dropped = _fit_all(root, dialect, path)
    return fitted, (*(f"{path}.{key}" for key in keys), *dropped)


def _fit_all(schema: Schema, dialect: Dialect, path: str) -> tuple[Schema, Dropped]:
    if dialect.keywords is None and not (dialect.lone_ref and any(name in schema for name in DEFINITIONS)):
        return schema, ()
    fitter = _SchemaFitter(SchemaReferences(schema), dialect)
    if dialect.keywords is not None and dialect.cycles != "all":
        fitter.references.refuse_cycles(only_required=dialect.cycles == "optional")
    fitted = fitter.fit(schema, path)
    return (schema if fitted == schema else fitted), tuple(fitter.dropped)


def _with_object_root(schema: Schema, dialect: Dialect) -> tuple[Schema, list[str]]:
    # Joining alternatives makes some properties optional, which strict dialects cannot express.
    if dialect.all_required and ("anyOf" in schema or "oneOf" in schema):
        raise UnfitSchemaError
    fitter = _SchemaFitter(SchemaReferences(schema), dialect)
    root = fitter.references.resolve(schema)
    keys = [key for key in NO_ROOT if key in root]
    for key in keys:
        root = fitter.without(root, key)
    if "$ref" in root or any(key in root for key in NO_ROOT):
        raise UnfitSchemaError
    return root, keys


@dataclass(slots=True)
class _SchemaFitter:
    """Fits a schema in a single pass, and collects the paths of the constraints that it moves into descriptions."""

    references: SchemaReferences
    dialect: Dialect
    dropped: list[str] = field(default_factory=list)
    nodes: int = 0
    replaced: int = 0
    depth: int = 0
    ancestors: list[Any] = field(default_factory=list)

    def fit(self, schema: Any, path: str) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        self.nodes += 1
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            raise UnfitSchemaError
        self.depth += 1
        reference = schema.get("$ref")
        if self.dialect.lone_ref and isinstance(reference, str) and any(not key.startswith("$") for key in schema):
            schema = self._replace_reference(schema, reference)
        if self.dialect.keywords is not None:
            schema = self._rewrite(schema)
        self.ancestors.append(reference)
        out = self._keep_supported(schema, path)
        self.ancestors.pop()
        self.depth -= 1
        return out

    def _replace_reference(self, schema: Schema, reference: str) -> Schema:
        self.replaced += 1
        if self.replaced > MAX_REPLACED or (reference in self.ancestors and "anyOf" in schema):
            raise UnfitSchemaError
        if reference not in self.ancestors:
            return self.references.resolve(schema)
        # Within a recursive schema, keep the reference as a separate alternative.
        return {"anyOf": [{"$ref": reference}], **{key: value for key, value in schema.items() if key != "$ref"}}

    def _keep_supported(self, schema: Schema, path: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        phrases: list[str] = []
        for key, value in schema.items():
            if self._supports(key, value):
                out[key] = self._fit_value(key, value, f"{path}.{key}")
            elif key not in NO_CONSTRAINT:
                phrases.append(phrase(key, value))
                self.dropped.append(f"{path}.{key}")
        self._close(out, path)
        return with_description(out, phrases) if phrases else out

    def _supports(self, key: str, value: Any) -> bool:
        dialect = self.dialect
        if dialect.keywords is None:
            return True
        if key not in dialect.keywords:
            return False
        if key == "format":
            return dialect.formats is None or (isinstance(value, str) and value in dialect.formats)
        if key == "minItems":
            return dialect.least_items is None or (isinstance(value, int) and value in dialect.least_items)
        if key == "enum" and dialect.simple_enum and isinstance(value, list | tuple):
            return not any(isinstance(item, Mapping | list | tuple) for item in value)
        return key != "pattern" or not isinstance(value, str) or UNSUPPORTED_PATTERN.search(value) is None

    def _fit_value(self, key: str, value: Any, path: str) -> Any:
        if key in SCHEMA_MAPS and isinstance(value, Mapping):
            return {name: self.fit(item, f"{path}.{name}") for name, item in value.items()}
        if (key in SCHEMA_LISTS or key == "items") and isinstance(value, list | tuple):
            return [self.fit(item, f"{path}[{at}]") for at, item in enumerate(value)]
        # The values of all other keywords are data, not schemas.
        return self.fit(value, path) if key in SINGLE_SCHEMAS else value

    def _rewrite(self, schema: Schema) -> Schema:
        # Make only changes that lose nothing. `_keep_supported` then moves what the dialect still does not support into
        # descriptions.
        keywords = self.dialect.keywords or frozenset()
        if "allOf" in schema and ("allOf" not in keywords or _has_reference(schema["allOf"])):
            schema = self._join_all(schema)
        if "oneOf" in schema and "oneOf" not in keywords and "anyOf" not in schema:
            schema = {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}
        const = schema.get("const")
        if type(const) in {str, int, float} and "const" not in keywords and "enum" not in schema:
            schema = {**{key: value for key, value in schema.items() if key != "const"}, "enum": [const]}
        if "definitions" in schema and "definitions" not in keywords and "$defs" not in schema:
            schema = {("$defs" if key == "definitions" else key): value for key, value in schema.items()}
        reference = schema.get("$ref")
        if isinstance(reference, str) and "definitions" not in keywords and reference.startswith("#/definitions/"):
            schema = {**schema, "$ref": reference.replace("#/definitions/", "#/$defs/", 1)}
        return schema

    def _close(self, out: dict[str, Any], path: str) -> None:
        if self.dialect.all_required and not any(key in out for key in ("type", "enum", "const", "anyOf", "$ref")):
            raise UnfitSchemaError
        if not self.dialect.closed or not is_object(out):
            return
        additional = out.get("additionalProperties", False)
        # An object with arbitrary property names cannot be closed.
        if isinstance(additional, Mapping) or (additional is not False and not out.get("properties")):
            raise UnfitSchemaError
        if self.dialect.all_required and (
            additional is not False or not schema_properties(out).keys() <= set(names_in(out.get("required")))
        ):
            raise UnfitSchemaError
        if additional is not False:
            self.dropped.append(f"{path}.additionalProperties")
        out["additionalProperties"] = False

    def _join_all(self, schema: Schema) -> Schema:
        value = schema["allOf"]
        if not isinstance(value, list | tuple) or not all(isinstance(member, Mapping) for member in value):
            return schema
        members = [self.references.resolve(item) for item in value]
        rest = {name: item for name, item in schema.items() if name != "allOf"}
        values: dict[str, Any] = {}
        for member in (*members, rest):
            for key, item in (*_places(member), *schema_properties(member).items()):
                # Two of the schemas define the same keyword or property differently.
                if key in values and values[key] != item:
                    return self._leave_unmerged(schema)
                values[key] = item
        return join(rest, members, all_hold=True)

    def _leave_unmerged(self, schema: Schema) -> Schema:
        # If the dialect does not support `allOf`, the keyword is moved into the description. If it supports `allOf`,
        # but not with references, it cannot express the schema.
        if "allOf" in (self.dialect.keywords or ()):
            raise UnfitSchemaError
        return schema

    def without(self, schema: Schema, key: str) -> Schema:
        """Join the alternatives under a keyword into one object, and describe them in text.

        Return the resulting schema.
        """
        rest = {name: value for name, value in schema.items() if name != key}
        value = schema[key]
        if key not in ALTERNATIVES or not isinstance(value, list | tuple):
            return with_description({"type": "object", **rest}, [phrase(key, value)])
        members = [self.references.resolve(item) for item in value if isinstance(item, Mapping)]
        if not all(is_object(item) or "required" in item for item in members):
            raise UnfitSchemaError
        merged = join(rest, members, all_hold=key == "allOf")
        return merged if key == "allOf" else with_description(merged, [_alternatives(members)])


def _has_reference(entries: Any) -> bool:
    return isinstance(entries, list | tuple) and any(
        isinstance(entry, Mapping) and "$ref" in entry for entry in entries
    )


def _places(schema: Schema) -> Iterator[tuple[str, Any]]:
    # The suffix distinguishes a keyword from a property with the same name.
    joinable = ("properties", "required", "title", "description")
    return ((f"{key} keyword", value) for key, value in schema.items() if key not in joinable)


def is_object(schema: Schema) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list | tuple) and "object" in kind) or "properties" in schema


def join(base: Schema, schemas: list[Schema], *, all_hold: bool) -> dict[str, Any]:
    """Return a schema with the properties of all schemas.

    The result requires the properties that all of them require or, with `all_hold`, the properties that any of them
    requires.
    """
    properties = dict(schema_properties(base))
    for schema in schemas:
        for name, value in schema_properties(schema).items():
            existing = properties.get(name, value)
            properties[name] = value if existing == value else {"anyOf": [existing, value]}
    lists = [names_in(schema.get("required")) for schema in schemas]
    names_found = dict.fromkeys(name for names in lists for name in names)
    common = [name for name in names_found if all_hold or all(name in names for names in lists)]
    required = list(dict.fromkeys([*names_in(base.get("required")), *common]))
    out = {key: value for schema in schemas for key, value in schema.items()} if all_hold else {"type": "object"}
    out |= {**base, **({"properties": properties} if properties or not all_hold else {})}
    return {**out, **({"required": required} if required else {})}


def _alternatives(schemas: list[Schema]) -> str:
    forms = [", ".join(names_in(schema.get("required")) or schema_properties(schema) or ["none"]) for schema in schemas]
    return f"one of these sets of properties: {' | '.join(dict.fromkeys(forms))}"


def phrase(key: str, value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return PHRASES.get(key, key + ": {}").replace("{}", text)


def with_description(schema: Schema, phrases: list[str]) -> dict[str, Any]:
    description = schema.get("description")
    lead = f"{description}\n\n" if isinstance(description, str) and description else ""
    return {**schema, "description": f"{lead}({'; '.join(phrases)})"}
