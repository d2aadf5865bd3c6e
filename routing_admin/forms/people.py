"""Signing in, inviting, and choosing a password."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm, SetPasswordMixin
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from capabilities.core.permissions import UserRole
from routing_admin.server import throttle
from routing_admin.server.addresses import address_in

if TYPE_CHECKING:
    _SetPasswordForm = SetPasswordForm[User]
else:
    _SetPasswordForm = SetPasswordForm

ROLES = (
    (UserRole.VIEWER.value, _("Viewer: reads")),
    (UserRole.EDITOR.value, _("Editor: sees everything; changes routes, services and agents, but not keys")),
    (UserRole.ADMINISTRATOR.value, _("Administrator: reads and changes")),
)


class SignInForm(AuthenticationForm):
    """Name and password; too many failures are refused before the password is looked at. `wait` is in seconds."""

    wait = 0

    def clean(self) -> dict[str, Any]:
        """The checked fields. Raises `ValidationError` when throttled or when name and password do not belong."""
        name = self.cleaned_data.get("username")
        if name and self.cleaned_data.get("password"):
            self.wait = throttle.enter(name, self.address)
            if self.wait:
                raise ValidationError(explain_wait(self.wait), code="throttled")
        return super().clean()

    def get_invalid_login_error(self) -> ValidationError:
        """What is said of a name and a password that do not belong together, whichever of them is wrong."""
        sentence = _("The user name or the password is wrong. Upper and lower case matter.")
        return ValidationError(sentence, code="invalid_login")

    @property
    def address(self) -> str:
        """Where the person signs in from."""
        return address_in(self.request.META if self.request else {}, settings.TRUSTED_PROXIES)


def explain_wait(seconds: int) -> str:
    """The sentence for somebody who has to wait."""
    minutes = math.ceil(seconds / 60)
    return ngettext(
        "Too many failed attempts to sign in from this address. Wait %(count)s minute, then try again.",
        "Too many failed attempts to sign in from this address. Wait %(count)s minutes, then try again.",
        minutes,
    ) % {"count": minutes}


class InviteForm(forms.Form):
    """Who is invited, and as what."""

    username = forms.CharField(
        label=_("User name"),
        max_length=150,
        validators=[UnicodeUsernameValidator()],
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=ROLES, initial=UserRole.VIEWER.value)


class RoleForm(forms.Form):
    """A user's role; `was` is the one the page showed."""

    role = forms.ChoiceField(label=_("Role"), choices=ROLES)
    was = forms.ChoiceField(choices=ROLES, widget=forms.HiddenInput)


def new_password_fields() -> tuple[Any, Any]:
    """The fields of a new password and of its repetition."""
    password, again = SetPasswordMixin.create_password_fields(
        label1=_("New password"), label2=_("Repeat the new password")
    )
    again.help_text = ""
    return password, again


class PasswordForm(PasswordChangeForm):
    """The old password, and a new one twice."""

    new_password1, new_password2 = new_password_fields()


class JoinForm(_SetPasswordForm):
    """What an invited person chooses: a password, twice, and the language of the pages."""

    new_password1, new_password2 = new_password_fields()
    language = forms.ChoiceField(label=_("Language of the pages"), choices=settings.LANGUAGES, required=False)
