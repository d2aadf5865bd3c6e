"""Gemini's `Schema`, a part of OpenAPI's, as JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from routing_admin.gateway.gemini.fields import read_fields

COUNTS = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
"""64-bit numbers, which proto JSON writes as strings."""
DIGITS = re.compile(r"[0-9]{1,18}")
INSIDE = ("items", "additionalProperties")
LISTS = ("anyOf", "prefixItems")
NAMED = ("properties", "defs")


def json_schema_of(schema: Any) -> Any:
    """Return the schema as JSON Schema; what is no object is returned as it came."""
    if not isinstance(schema, dict):
        return schema
    node = dict(read_fields(schema, ""))
    for name in COUNTS:
        if isinstance(node.get(name), str) and DIGITS.fullmatch(node[name]):
            node[name] = int(node[name])
    for name in INSIDE:
        if name in node:
            node[name] = json_schema_of(node[name])
    for name in LISTS:
        if isinstance(node.get(name), list):
            node[name] = [json_schema_of(each) for each in node[name]]
    for name in NAMED:
        if isinstance(node.get(name), dict):
            node[name] = {key: json_schema_of(each) for key, each in node[name].items()}
    return {**_type_of(node), **_rename(node)}


def _type_of(node: dict[str, Any]) -> dict[str, Any]:
    kind, nullable = node.pop("type", None), node.pop("nullable", None)
    if not isinstance(kind, str):
        return {} if kind is None else {"type": kind}
    word = kind.lower()
    if word == "type_unspecified":
        return {}
    if nullable is not True:
        return {"type": word}
    if isinstance(node.get("enum"), list):
        node["enum"] = [*node["enum"], None]
    return {"type": [word, "null"]}


def _rename(node: dict[str, Any]) -> Mapping[str, Any]:
    """Return the rest of a node: properties in their order, and what JSON Schema calls otherwise."""
    order, properties = node.pop("propertyOrdering", None), node.get("properties")
    if isinstance(order, list) and isinstance(properties, dict):
        first = {name: properties[name] for name in order if isinstance(name, str) and name in properties}
        node["properties"] = {**first, **properties}
    if node.get("format") == "enum":
        del node["format"]
    if "example" in node:
        node["examples"] = [node.pop("example")]
    if "defs" in node:
        node["$defs"] = node.pop("defs")
    if isinstance(ref := node.pop("ref", None), str):
        node["$ref"] = ref.replace("#/defs/", "#/$defs/")
    return node
