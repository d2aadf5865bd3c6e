"""A new token for scripts."""

from __future__ import annotations

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from capabilities.core.permissions import ADMIN_SCOPES
from routing_admin.console.people.token_actions import DAYS, MAX_DAYS

MEANINGS: dict[str, str | Promise] = {
    "providers:read": _("see providers"),
    "providers:write": _("change providers and set their keys"),
    "services:read": _("see model services"),
    "services:write": _("change model services"),
    "routes:read": _("see task routes and aliases"),
    "routes:write": _("change task routes and aliases"),
    "agents:read": _("see agents"),
    "agents:write": _("change agents"),
    "keys:read": _("see agents' keys, without their secrets"),
    "keys:write": _("issue, change, rotate and revoke agents' keys"),
    "people:read": _("see users and their roles"),
    "people:write": _("invite users, change roles, deactivate users"),
    "settings:read": _("see languages and settings"),
    "settings:write": _("change languages and settings"),
    "requests:read": _("see requests, without their words"),
    "history:read": _("see the history"),
    "history:write": _("undo and restore"),
    "config:read": _("export the configuration"),
    "config:write": _("import a configuration"),
}
"""What each scope lets a token do."""


class TokenForm(forms.Form):
    """A new token: what it is for, what it may do, when it ends."""

    name = forms.RegexField(
        r"^[\w .:@+-]+$",
        label=_("Name"),
        max_length=60,
        help_text=_("Shown in the history and the audit log, for example deploy."),
        error_messages={"invalid": _("Letters, digits, spaces and . _ : @ + - only.")},
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        choices=[(scope, scope) for scope in ADMIN_SCOPES],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose what the token may do.")},
    )
    days = forms.IntegerField(label=_("Expires after (days)"), min_value=1, max_value=MAX_DAYS, initial=DAYS)

    @property
    def scope_boxes(self) -> list[tuple[str, str | Promise, bool]]:
        """The scopes with what each means and whether it is ticked."""
        ticked = self["scopes"].value() or []
        return [(scope, MEANINGS[scope], scope in ticked) for scope in ADMIN_SCOPES]
