"""Queries for the settings page: settings, sizes of artifacts and database, and values from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Sum
from django.utils.translation import gettext_lazy

from artifacts.models import Artifact
from routing_admin.configuration.installation import retention_settings
from routing_admin.core.files.keys import OPENAI_URL
from routing_admin.environment import SETTINGS, Setting
from routing_admin.models import Installation
from routing_admin.paths import env_file


def find_installation() -> Installation:
    """Return the row of the installation, or an unsaved row with default values."""
    return Installation.current()


def read_settings() -> dict[str, Any]:
    """Return the settings page's settings by name, excluding languages, exchange rates and environment settings."""
    return stored_settings(Installation.current())


def stored_settings(row: Installation) -> dict[str, Any]:
    return {
        "default_language": row.default_language,
        "content_policy": row.content_policy,
        "content_text": row.content_text,
        "content_html": row.content_html,
        **asdict(retention_settings(row)),
        "record_bodies": row.record_bodies,
    }


def sum_artifact_sizes() -> int:
    """Return the total size of all artifacts in bytes. Deleted artifacts count until they are pruned."""
    return Artifact.objects.aggregate(total=Sum("size"))["total"] or 0


def measure_database() -> int | None:
    """Return the size of the database in bytes, or None for SQLite, whose files are in the data directory."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def find_database_name() -> str:
    return f"{connection.display_name} {'.'.join(map(str, connection.get_database_version()))}"


DOTENV_LINE = re.compile(r"^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*+(\S*(?:[ \t]+\S+)*)", re.MULTILINE)
SECRET_NAMES = {"ROUTING_ADMIN_SECRET_KEY": "secret_key", "ROUTING_ADMIN_KEYS": "keys"}
"""Maps environment variables for secrets to the files in which generated secrets are stored."""

DEFAULT = "default"
"""Value of `source` for a setting that is not set."""

TRANSLATED_VALUES = {
    "files in the data directory": gettext_lazy("files in the data directory"),
    "single sign-on": gettext_lazy("single sign-on"),
}
"""Default values that are descriptions, listed here so that they are translated."""


MAX_SHOWN = 3
"""Maximum number of entries of a list that the page shows without a click."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as the page shows it.

    `source` is environment, dotenv, generated or default. The `value` of a secret is empty.
    """

    setting: Setting
    value: str
    source: str
    is_set: bool

    @property
    def first(self) -> Sequence[str]:
        return self.value.split(",")[:MAX_SHOWN]

    @property
    def others(self) -> Sequence[str]:
        return self.value.split(",")[MAX_SHOWN:]

    @property
    def number(self) -> int:
        return len(self.first) + len(self.others)


def values_in_force() -> dict[str, list[SettingRow]]:
    """Return the settings that are set and those with defaults, both in the order of routing_admin/environment.py."""
    rows = setting_rows(os.environ, read_dotenv(env_file(settings.DATA_DIR)), settings.DATA_DIR)
    return {
        "explicit": [row for row in rows if row.source != DEFAULT],
        "default": [row for row in rows if row.source == DEFAULT],
    }


def read_dotenv(path: Path) -> dict[str, str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value.strip("'\"") for name, value in DOTENV_LINE.findall(text)}


def setting_rows(environment: Mapping[str, str], dotenv: Mapping[str, str], data_dir: Path) -> list[SettingRow]:
    """Return the page's row for each setting, given the environment, the `.env` file and the data directory."""
    rows: list[SettingRow] = []
    for setting in SETTINGS:
        names = list_variables(setting, environment)
        if names:
            rows.append(setting_row(setting, names, environment, dotenv))
        else:
            rows.append(build_unset_row(setting, data_dir))
    return rows


def list_variables(setting: Setting, environment: Mapping[str, str]) -> list[str]:
    pattern = re.compile(re.escape(setting.name).replace(re.escape("{NAME}"), r"\w+"))
    return sorted(name for name, value in environment.items() if value and pattern.fullmatch(name))


def setting_row(
    setting: Setting, names: list[str], environment: Mapping[str, str], dotenv: Mapping[str, str]
) -> SettingRow:
    # The `.env` file is loaded into the environment at start, so a variable that has the same value as in the file was
    # set by the file.
    source = "dotenv" if all(dotenv.get(name) == environment[name] for name in names) else "environment"
    value = environment[names[0]]
    if setting.secret:
        # The name of a provider key's variable may be shown, but never its value.
        value = ",".join(names) if "{NAME}" in setting.name else ""
    return SettingRow(setting, strip_password(value), source, is_set=True)


def build_unset_row(setting: Setting, data_dir: Path) -> SettingRow:
    if setting.name in SECRET_NAMES:
        return SettingRow(setting, "", "generated", is_set=(data_dir / SECRET_NAMES[setting.name]).exists())
    # The defaults of these settings are not constant but determined at start.
    in_force = {
        "ROUTING_ADMIN_DATA_DIR": str(data_dir),
        "ROUTING_ADMIN_PUBLIC_URL": settings.PUBLIC_URL,
        "LLM_ENDPOINT": OPENAI_URL,
    }
    value = in_force.get(setting.name, setting.default)
    return SettingRow(
        setting, "" if setting.secret else str(TRANSLATED_VALUES.get(value, value)), DEFAULT, is_set=False
    )


def strip_password(value: str) -> str:
    return re.sub(r"(?<=://)[^/@\s]+@", "", value)


def sum_file_sizes(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
