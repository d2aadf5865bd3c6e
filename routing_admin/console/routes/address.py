"""How a task type stands in an address: as it is where that is safe, else encoded, since a task type is any text."""

from __future__ import annotations

import base64
import binascii
import re

PLAIN = re.compile(r"[^/~.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*")
TAKEN = frozenset({"new"})
MARK = "~"


class TaskType:
    """A path converter: `planning` is itself, `a/b`, `..` and `new` are `~` and their UTF-8 in base64."""

    regex = r"[^/]+"

    def to_python(self, value: str) -> str:
        """The task type in an address. Raises `ValueError`, which is a 404."""
        if not value.startswith(MARK):
            return value
        data = value[1:] + "=" * (-len(value[1:]) % 4)
        try:
            return base64.b64decode(data, altchars=b"-_", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(value) from error

    def to_url(self, value: str) -> str:
        """The address's part for a task type."""
        if PLAIN.fullmatch(value) and value not in TAKEN:
            return value
        return MARK + base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
