"""The form that corrects an artifact's type, encoding and visibility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from artifacts.library import CorrectionFields

if TYPE_CHECKING:
    from artifacts.models import Artifact

Group = tuple[str | Promise, tuple[str, ...]]

ENCODINGS: Sequence[Group] = (
    ("Unicode", ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")),
    (gettext_lazy("Chinese"), ("gb18030", "big5", "big5hkscs", "hz")),
    (gettext_lazy("Japanese"), ("shift_jis", "cp932", "euc_jp", "euc_jis_2004", "iso2022_jp")),
    (gettext_lazy("Korean"), ("cp949", "johab", "iso2022_kr")),
    (gettext_lazy("Western"), ("cp1252", "iso8859-15", "mac-roman", "cp437", "cp850")),
    (gettext_lazy("Central European"), ("cp1250", "iso8859-2", "cp852")),
    (gettext_lazy("Cyrillic"), ("cp1251", "koi8-r", "koi8-u", "iso8859-5", "cp866", "cp855", "mac-cyrillic")),
    (gettext_lazy("Greek, Turkish, Baltic"), ("cp1253", "iso8859-7", "cp1254", "cp1257")),
    (gettext_lazy("Hebrew, Arabic"), ("cp1255", "cp1256")),
    (gettext_lazy("Thai, Vietnamese"), ("cp874", "cp1258")),
)
"""Encodings to choose from, grouped by script."""

OTHER_NAMES: Mapping[str, str] = {
    "gb18030": "GBK, GB2312",
    "cp932": "Windows-31J",
    "cp949": "EUC-KR",
    "cp1252": "ISO-8859-1",
    "cp874": "TIS-620",
}
"""Other common names of encodings."""

TYPES = (
    *("text/plain", "text/markdown", "text/csv", "text/html", "application/json", "application/xml"),
    *("application/yaml", "text/x-python", "application/pdf", "application/rtf", "message/rfc822", "application/zip"),
    *("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "application/msword"),
    *("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "application/vnd.ms-excel"),
    *("application/vnd.openxmlformats-officedocument.presentationml.presentation", "application/vnd.ms-powerpoint"),
    *("image/png", "image/jpeg", "image/gif", "image/webp", "image/tiff", "image/svg+xml"),
    *("audio/mpeg", "audio/wav", "audio/ogg", "video/mp4", "video/webm"),
)
"""Suggested MIME types. The field accepts any other type too."""


class CorrectionForm(forms.Form):
    """The form that corrects a file's type, encoding and visibility, filled in with the current values.

    The page also posts each value that it showed, as `before_…`. A field counts as changed if its value differs from
    that, or if there is no `before_…`.
    """

    mime_type = forms.CharField(
        label=gettext_lazy("Type"),
        required=False,
        widget=forms.TextInput(attrs={"list": "types", "spellcheck": "false", "autocapitalize": "off"}),
        help_text=gettext_lazy("A MIME type. Empty: what was detected."),
    )
    encoding = forms.CharField(label=gettext_lazy("Encoding"), required=False, widget=forms.Select)
    visibility = forms.CharField(label=gettext_lazy("Visible to"), required=False, widget=forms.Select)

    def __init__(self, row: Artifact, data: Mapping[str, Any] | None = None, auto_id: str = "id_%s") -> None:
        self.before = {name: getattr(row, name) for name in ("mime_type", "encoding", "visibility")}
        super().__init__(data, initial=self.before, auto_id=auto_id)
        self.fields["encoding"].widget.choices = encoding_choices(row.encoding)
        self.fields["visibility"].widget.choices = visibility_choices(row)

    def changes(self) -> CorrectionFields:
        """Return the corrections. None restores a field's detected value."""
        changes = CorrectionFields()
        if self._is_change("mime_type"):
            changes["mime_type"] = self.cleaned_data["mime_type"] or None
        if self._is_change("encoding"):
            changes["encoding"] = self.cleaned_data["encoding"] or None
        if self._is_change("visibility"):
            changes["visibility"] = self.cleaned_data["visibility"]
        return changes

    def _is_change(self, name: str) -> bool:
        # Comparing with the value that the page showed keeps corrections that another user has made in the meantime.
        return name in self.data and self.cleaned_data[name] != self.data.get(f"before_{name}")


def encoding_choices(current: str) -> list[Any]:
    """Return the encodings in groups, preceded by the current encoding if it is in no group."""
    offered = {name for _, names in ENCODINGS for name in names}
    current_group = [] if current in offered else [(current, current or _("none (not text)"))]
    return [*current_group, *((label, [(name, _label(name)) for name in names]) for label, names in ENCODINGS)]


def _label(name: str) -> str:
    return f"{name} ({OTHER_NAMES[name]})" if name in OTHER_NAMES else name


def visibility_choices(row: Artifact) -> list[tuple[str, str]]:
    # A user's upload belongs to no agent. With the visibility "private", only users can see it.
    no_owner = {} if row.owner else {row.Visibility.PRIVATE: _("no agent, only people on these pages")}
    return [(visibility.value, str(no_owner.get(visibility, visibility.label))) for visibility in row.Visibility]
