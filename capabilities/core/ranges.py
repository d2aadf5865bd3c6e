"""Between which numbers is a parameter valid? Files, forms and calls ask here; both ends are in the range."""

from __future__ import annotations

TEMPERATURE = (0, 2)
MAX_TOKENS = (1, 2**31 - 1)
RETRIES = (0, 10)
MAX_SECONDS = 86_400
"""The longest time anybody may set, a day: of a connection, of a first content, of a whole answer."""
SHORTEST_SECONDS = 0.1
"""The shortest time that a page offers; a file may name any above 0."""
