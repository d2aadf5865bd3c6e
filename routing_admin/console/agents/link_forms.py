"""The form of a link to an agent's own page."""

from __future__ import annotations

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy


class AgentLinkForm(forms.Form):
    """Whom a link is for, until when it opens the page, and whether it shows recorded words."""

    name = forms.CharField(
        label=gettext_lazy("Who it is for"),
        max_length=100,
        help_text=gettext_lazy("Only administrators read it."),
    )
    days = forms.TypedChoiceField(
        label=gettext_lazy("It works for"),
        choices=[
            ("7", gettext_lazy("7 days")),
            ("30", gettext_lazy("30 days")),
            ("90", gettext_lazy("90 days")),
            ("0", gettext_lazy("until it is revoked")),
        ],
        initial="90",
        coerce=int,
    )
    with_bodies = forms.BooleanField(
        label=gettext_lazy("With recorded bodies"),
        required=False,
        help_text=gettext_lazy("Includes what was sent and answered, if Settings have it recorded."),
    )

    @property
    def expires_at(self) -> datetime | None:
        """When the link ends; None for never."""
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None
