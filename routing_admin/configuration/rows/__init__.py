"""Read the configuration from database rows and write it back.

Rows and JSON (`core/configuration/as_json.py`) are two representations of one `Configuration`.
"""

from routing_admin.configuration.rows.reading import read
from routing_admin.configuration.rows.writing import write, write_chain

__all__ = ["read", "write", "write_chain"]
