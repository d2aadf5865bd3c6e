"""The import form and the files uploaded with it."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.utils.translation import gettext_lazy as _

from artifacts.storage.uploads import IN_MEMORY

MERGE, REPLACE = "merge", "replace"
# Larger files can be imported with `routing-admin import`.
MAX_FILE_BYTES = IN_MEMORY


class ImportForm(forms.Form):
    mode = forms.ChoiceField(choices=[(MERGE, _("Merge")), (REPLACE, _("Replace"))], initial=MERGE, required=False)
    message = forms.CharField(max_length=300, required=False, strip=True)
    expected = forms.IntegerField(min_value=0, required=False)


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """An uploaded file: its name, and its text or, if that is not UTF-8, its bytes."""

    name: str
    content: str | bytes

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else ""

    @property
    def size(self) -> int:
        return len(self.content.encode()) if isinstance(self.content, str) else len(self.content)

    @property
    def lines(self) -> int:
        return self.text.count("\n") + (not self.text.endswith("\n"))


def read_upload(file: UploadedFile) -> ConfigFile:  # type: ignore[type-arg]
    data = file.read()
    try:
        return ConfigFile(file.name or "", data.decode())
    except UnicodeDecodeError:
        return ConfigFile(file.name or "", data)
