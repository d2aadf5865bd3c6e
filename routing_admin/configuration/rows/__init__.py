"""How is the configuration stored in rows? All are read into one value, and written from one.

Together with `core/configuration/as_json.py`: rows and JSON are two forms of one value.
"""

from routing_admin.configuration.rows.reading import read
from routing_admin.configuration.rows.writing import write, write_chain

__all__ = ["read", "write", "write_chain"]
