"""Locations of the program's files and data, in a checkout or in an installed package."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from platformdirs import user_data_path

BASE_DIR = Path(__file__).resolve().parent.parent
"""The folder with the program's packages."""
INSTALLED_FILES = Path(__file__).resolve().with_name("files")
"""Templates, static files and documents inside an installed package."""
IS_INSTALLED = INSTALLED_FILES.is_dir()
FILES = INSTALLED_FILES if IS_INSTALLED else BASE_DIR
"""The folder with `templates`, `static` and `docs`."""
PACKAGE = "routing-admin"
ENV_FILE = ".env"


@cache
def program_version() -> str:
    if IS_INSTALLED:
        return version(PACKAGE)
    with (BASE_DIR / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def default_data_directory() -> Path:
    """Return `var/` in a checkout, else a folder in the platform's place for user data, such as `~/.local/share`."""
    return user_data_path(PACKAGE, appauthor=False) if IS_INSTALLED else BASE_DIR / "var"


def env_file(directory: Path) -> Path:
    """Return the file with additional environment variables, in the checkout if any, else in the data directory."""
    return (directory if IS_INSTALLED else BASE_DIR) / ENV_FILE
