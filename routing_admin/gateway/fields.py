"""Reading a JSON object field by field: the value, or a refusal that names the field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from routing_admin.gateway.errors import BadRequestError

Object = Mapping[str, Any]


def wrong(what: str, param: str) -> BadRequestError:
    """The refusal of a value of the wrong type."""
    return BadRequestError(f"{param} is {what}.", param, "invalid_type")


def missing(param: str) -> BadRequestError:
    """The refusal of a request that lacks something."""
    return BadRequestError(f"{param} is required.", param, "missing_required_parameter")


def an_object(value: Any, param: str) -> Object:
    """A JSON object. Raises `BadRequestError` for anything else."""
    if not isinstance(value, dict):
        raise wrong("an object", param)
    return value


def a_list(value: Any, param: str) -> list[Any]:
    """A JSON list. Raises `BadRequestError` for anything else."""
    if not isinstance(value, list):
        raise wrong("a list", param)
    return value


def text_in(source: Object, key: str, at: str, *, required: bool = False) -> str | None:
    """A string; None when absent or null. Raises `BadRequestError` for anything else, and when it is `required`."""
    value = source.get(key)
    param = f"{at}.{key}".lstrip(".")
    if value is None and required:
        raise missing(param)
    if value is not None and not isinstance(value, str):
        raise wrong("a string", param)
    return value


def needed_text(source: Object, key: str, at: str) -> str:
    """A string that must be there."""
    return text_in(source, key, at, required=True) or ""


def truth_in(source: Object, key: str) -> bool | None:
    """true or false; None when absent or null. Raises `BadRequestError` for anything else."""
    value = source.get(key)
    if value is not None and not isinstance(value, bool):
        raise wrong("true or false", key)
    return value


def number_in(source: Object, key: str, low: float, high: float) -> float | None:
    """A finite number within bounds; None when absent or null. Raises `BadRequestError` for anything else."""
    value = source.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise wrong("a number", key)
    if not low <= value <= high:
        raise BadRequestError(f"{key} is a number from {low:g} to {high:g}.", key, "out_of_range")
    return value


def count_in(source: Object, key: str) -> int | None:
    """A whole number of at least 1; None when absent or null. Raises `BadRequestError` for anything else."""
    value = source.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong("a whole number", key)
    if value < 1:
        raise BadRequestError(f"{key} is a whole number of at least 1.", key, "out_of_range")
    return value
