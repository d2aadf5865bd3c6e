"""How are routes, aliases, languages and the installation changed? Imports, restore and undo, too.

What they return has `revision`, as in `capabilities.actions`.
"""

from routing_admin.actions.budgets import delete_budget, save_budget
from routing_admin.actions.history import restore, undo
from routing_admin.actions.importing import import_configuration, preview_import
from routing_admin.actions.routes import check_can_delete_route, delete_route, save_alias, save_route, save_route_as

__all__ = [
    "check_can_delete_route",
    "delete_budget",
    "delete_route",
    "import_configuration",
    "preview_import",
    "restore",
    "save_alias",
    "save_budget",
    "save_route",
    "save_route_as",
    "undo",
]
