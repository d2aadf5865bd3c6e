"""Locations of the program's files and data, both in a checkout and in an installed package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_data_path

BASE_DIR = Path(__file__).resolve().parent.parent
"""The folder that contains the program's packages."""
INSTALLED_FILES = Path(__file__).resolve().with_name("files")
"""Folder with templates, static files and documents in an installed package; a checkout does not have it."""
IS_INSTALLED = INSTALLED_FILES.is_dir()
FILES = INSTALLED_FILES if IS_INSTALLED else BASE_DIR
"""The folder that contains `templates`, `static` and `docs`."""
PACKAGE = "routing-admin"
ENV_FILE = ".env"


@cache
def program_version() -> str:
    if IS_INSTALLED:
        return version(PACKAGE)
    with (BASE_DIR / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def default_data_directory() -> Path:
    """Return `var/` in a checkout, otherwise a folder in the user's data directory, such as `~/.local/share`."""
    return user_data_path(PACKAGE, appauthor=False) if IS_INSTALLED else BASE_DIR / "var"


def env_file(directory: Path) -> Path:
    """Return the file with additional environment variables.

    It is in the checkout, or in `directory` if the package is installed.
    """
    return (directory if IS_INSTALLED else BASE_DIR) / ENV_FILE
