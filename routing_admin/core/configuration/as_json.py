"""Convert the configuration to and from the JSON that revisions store.

The conversion loses nothing: `from_json(to_json(c)) == c`. This format is internal; `core/files` has the file formats.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.documents.kept_fields import same_json


def to_json(configuration: Configuration) -> dict[str, Any]:
    """Return the configuration as plain JSON. Keys appear only as variable names, or as ciphertext and fingerprint."""
    return cast(dict[str, Any], _encode(configuration))


def from_json(value: Mapping[str, Any]) -> Configuration:
    """Read the output of `to_json`, ignoring fields that this version of the program does not have."""
    return cast(Configuration, _decode(value, Configuration))


def same_value(first: object, second: object) -> bool:
    """Return whether two configuration values are equal in their JSON form."""
    return same_json(_encode(first), _encode(second))


def _encode(value: object) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: _encode(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {key: _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item) for item in value]
    return value


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _decode(value: Any, hint: Any) -> Any:
    if value is None or hint is Any:
        return value
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _decode(value, _select_type(value, arguments))
    if origin is tuple:
        return tuple(_decode(item, arguments[0]) for item in value)
    if origin is not None and isinstance(value, Mapping):
        return {key: _decode(item, arguments[1]) for key, item in value.items()}
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        # Ignore fields that only newer or older versions of the program have.
        return hint(**{name: _decode(item, hints[name]) for name, item in value.items() if name in hints})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


def _select_type(value: Any, arguments: tuple[Any, ...]) -> Any:
    # For a union type, use its dataclass or collection type if the JSON value is an object or a list, else its scalar
    # type.
    is_object = isinstance(value, Mapping | list)
    for argument in arguments:
        takes_object = get_origin(argument) is not None or is_dataclass(argument)
        if argument is not type(None) and takes_object == is_object:
            return argument
    return Any
