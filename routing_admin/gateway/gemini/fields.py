"""Read JSON as leniently as protobuf, which accepts snake_case names, one object for a list, and URL-safe base64."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from routing_admin.gateway.fields import Object, check_list, check_object

UNDERSCORE = re.compile(r"(?<=[^_])_([a-z0-9])")


def read_fields(value: Any, path: str) -> Object:
    """Return a JSON object with its keys in camelCase; raise `BadRequestError` for anything else."""
    fields = check_object(value, path)
    if not any("_" in key for key in fields):
        return fields
    return {UNDERSCORE.sub(lambda match: match[1].upper(), key): field for key, field in fields.items()}


def list_objects(value: Any, path: str) -> list[Object]:
    """Return the objects of a list, or a single object as a list; raise `BadRequestError` for anything else."""
    if value is None:
        return []
    values = [value] if isinstance(value, dict) else check_list(value, path)
    return [read_fields(item, f"{path}[{number}]") for number, item in enumerate(values)]


def plain_base64(text: str) -> str:
    """Return base64 with padding in the standard alphabet; google-genai uses the URL-safe alphabet."""
    if "-" in text or "_" in text:
        text = text.replace("-", "+").replace("_", "/")
    return text if text.endswith("=") else text + "=" * (-len(text) % 4)


def is_base64(text: str) -> bool:
    """Return whether the text is valid base64; clients would reject the whole answer if it were not."""
    try:
        return bool(base64.b64decode(plain_base64(text), validate=True))
    except (binascii.Error, ValueError):
        return False


def decode_text(text: str) -> str:
    """Return the decoded text, or "" for invalid base64."""
    try:
        return base64.b64decode(plain_base64(text), validate=True).decode()
    except (binascii.Error, ValueError):
        return ""
