"""An import: files or pasted text, how it is meant, and what was looked at before it is applied."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from artifacts.storage.uploads import IN_MEMORY

MERGE, REPLACE = "merge", "replace"
LARGEST_FILE = IN_MEMORY
"""Bytes of a configuration file that a page reads; a larger one goes through `manage.py import_config`."""


class ImportForm(forms.Form):
    """How an import is meant."""

    mode = forms.ChoiceField(choices=[(MERGE, _("Merge")), (REPLACE, _("Replace"))], initial=MERGE, required=False)
    message = forms.CharField(max_length=300, required=False, strip=True)
    expected = forms.IntegerField(min_value=0, required=False)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file as it was sent: its name, and its text or, where it is no UTF-8, its bytes."""

    name: str
    content: str | bytes

    @property
    def text(self) -> str:
        """What a text area can hold."""
        return self.content if isinstance(self.content, str) else ""

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.content.encode()) if isinstance(self.content, str) else len(self.content)

    @property
    def lines(self) -> int:
        """Lines of its text."""
        return self.text.count("\n") + (not self.text.endswith("\n"))


def read_upload(file: UploadedFile) -> ConfigFile:  # type: ignore[type-arg]
    """An uploaded file, decoded where it is UTF-8."""
    data = file.read()
    try:
        return ConfigFile(file.name or "", data.decode())
    except UnicodeDecodeError:
        return ConfigFile(file.name or "", data)
