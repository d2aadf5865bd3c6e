"""Forms for signing in, invitations, roles, passwords and tokens."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm, SetPasswordMixin
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from capabilities.core.permissions import ADMIN_SCOPES, UserRole
from routing_admin.console.people.actions import DAYS, MAX_DAYS
from routing_admin.platform.auth import throttle
from routing_admin.platform.auth.addresses import client_address
from routing_admin.platform.auth.password_hashing import hashing_slots
from routing_admin.platform.server.fair_semaphore import OverloadedError

if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm

_T = TypeVar("_T")
ROLES = (
    (UserRole.VIEWER.value, _("Viewer: reads")),
    (UserRole.EDITOR.value, _("Editor: sees everything; changes routes, services and agents, but not keys")),
    (UserRole.ADMINISTRATOR.value, _("Administrator: reads and changes")),
)


class PasswordCheck:
    """A mixin for forms that check a password.

    If the check was refused, `wait` is the number of seconds to wait and `status` the HTTP status.
    """

    wait, status = 0, 200

    def check_password(self, name: str, address: str, check: Callable[[], _T]) -> _T:
        """Return the result of `check`. Raise `ValidationError` after too many failed attempts, or on overload."""
        try:
            # Take the hashing slot before the throttle, so that an attempt that gets no slot does not count as a
            # failure.
            with hashing_slots().hold(address):
                self.wait = throttle.enter(name, address)
                if not self.wait:
                    return check()
        except OverloadedError as error:
            self.wait, self.status = math.ceil(error.retry_after), 503
            busy = _("Many passwords are being checked at this moment. Try again in a few seconds.")
            raise ValidationError(busy, code="overloaded") from None
        self.status = 429
        raise ValidationError(explain_wait(self.wait), code="throttled")


class SignInForm(PasswordCheck, AuthenticationForm):
    """The sign-in form. After too many failures, it is invalid, and the password is not checked."""

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        if name and self.cleaned_data.get("password"):
            return self.check_password(name, self.address, super().clean)
        return super().clean()

    def get_invalid_login_error(self) -> ValidationError:
        # The message is the same for an unknown name and a wrong password, so that it does not reveal which names
        # exist.
        sentence = _("The user name or the password is wrong. Upper and lower case matter.")
        return ValidationError(sentence, code="invalid_login")

    @property
    def address(self) -> str:
        return client_address(self.request.META if self.request else {}, settings.TRUSTED_PROXIES)


def explain_wait(seconds: int) -> str:
    minutes = math.ceil(seconds / 60)
    return ngettext(
        "Too many failed attempts to sign in from this address. Wait %(count)s minute, then try again.",
        "Too many failed attempts to sign in from this address. Wait %(count)s minutes, then try again.",
        minutes,
    ) % {"count": minutes}


class InviteForm(forms.Form):
    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial=UserRole.VIEWER.value)


class RoleForm(forms.Form):
    """The form for a user's role. `was` is the role that the page showed."""

    role = forms.ChoiceField(label=_("Role"), choices=ROLES)
    was = forms.ChoiceField(choices=ROLES, widget=forms.HiddenInput)


def new_password_fields() -> tuple[Any, Any]:
    password, repeated = SetPasswordMixin.create_password_fields(
        label1=_("New password"), label2=_("Repeat the new password")
    )
    repeated.help_text = ""
    return password, repeated


class PasswordForm(PasswordCheck, PasswordChangeForm):
    """The form for changing a password. Checks of the old password are throttled as at sign-in."""

    new_password1, new_password2 = new_password_fields()

    def __init__(self, user: User, data: QueryDict | None, address: str) -> None:
        super().__init__(user, data)
        self.address = address

    def clean_old_password(self) -> str:
        name = self.user.get_username()
        password = self.check_password(name, self.address, super().clean_old_password)
        throttle.leave(name, self.address)
        return password


class JoinForm(_SetPasswordForm):
    """The form for an invited user: a password, typed twice, and the language of the pages."""

    new_password1, new_password2 = new_password_fields()
    language = forms.ChoiceField(label=_("Language of the pages"), choices=settings.LANGUAGES, required=False)


SCOPE_MEANINGS: dict[str, str | Promise] = {
    "providers:read": _("see providers"),
    "providers:write": _("change providers and set their keys"),
    "services:read": _("see model services"),
    "services:write": _("change model services"),
    "routes:read": _("see task routes and aliases"),
    "routes:write": _("change task routes and aliases"),
    "agents:read": _("see agents"),
    "agents:write": _("change agents"),
    "keys:read": _("see agents' keys, without their secrets"),
    "keys:write": _("issue, edit, rotate and revoke agents' keys"),
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
"""Maps each token scope to a description of what it permits."""


class TokenForm(forms.Form):
    """The form for a new token: its name, scopes and validity."""

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
        ticked = self["scopes"].value() or []
        return [(scope, SCOPE_MEANINGS[scope], scope in ticked) for scope in ADMIN_SCOPES]
