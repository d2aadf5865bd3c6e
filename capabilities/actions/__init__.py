"""How are providers, services, agents and keys changed? Pages, API and commands all use this.

What an action on the configuration returns has `revision`: the number of the revision it made, None when nothing
changed. That number, and no other, is what Undo is offered for.
"""

from capabilities.actions.agent_links import make_link, note_visit, revoke_link
from capabilities.actions.agents import (
    change_key,
    check_can_delete_agent,
    delete_agent,
    delete_made_agent,
    find_service,
    issue_key,
    put_agent,
    revoke_key,
    roll_key,
    save_agent,
)
from capabilities.actions.catalogue import NewModel, add_models, fill_from_catalogue
from capabilities.actions.drift import accept_doubt, dismiss_drift
from capabilities.actions.nightly import set_nightly
from capabilities.actions.probing import probe_service
from capabilities.actions.provider_keys import (
    add_provider_key,
    change_provider_key,
    confirm_key_origin,
    remove_provider_key,
)
from capabilities.actions.providers import (
    KeyChange,
    check_can_delete_provider,
    delete_provider,
    enable_providers,
    save_provider,
)
from capabilities.actions.services import (
    check_can_delete_service,
    delete_service,
    save_service,
    set_capabilities,
    set_cell,
)
from capabilities.actions.stored_keys import rotate_stored_keys
from capabilities.actions.testing import record_key_tests, record_tests

__all__ = [
    "KeyChange",
    "NewModel",
    "accept_doubt",
    "add_models",
    "add_provider_key",
    "change_key",
    "change_provider_key",
    "check_can_delete_agent",
    "check_can_delete_provider",
    "check_can_delete_service",
    "confirm_key_origin",
    "delete_agent",
    "delete_made_agent",
    "delete_provider",
    "delete_service",
    "dismiss_drift",
    "enable_providers",
    "fill_from_catalogue",
    "find_service",
    "issue_key",
    "make_link",
    "note_visit",
    "probe_service",
    "put_agent",
    "record_key_tests",
    "record_tests",
    "remove_provider_key",
    "revoke_key",
    "revoke_link",
    "roll_key",
    "rotate_stored_keys",
    "save_agent",
    "save_provider",
    "save_service",
    "set_capabilities",
    "set_cell",
    "set_nightly",
]
