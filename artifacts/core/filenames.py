"""Sanitize untrusted file names, and write them into download headers.

A name is only a label and never a path on disk, since files are stored under their hash.
"""

from __future__ import annotations

import re
import unicodedata
from urllib.parse import quote

MAX_BYTES = 255
"""Maximum length of a file name in common file systems, in bytes of UTF-8."""

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Bidirectional control characters, which can make `gnp.exe` look like `exe.png`."""

DOTFILES = (
    *(
        "babelrc",
        "bash_profile",
        "bashrc",
        "clang-format",
        "clang-tidy",
        "dockerignore",
        "editorconfig",
        "env",
        "envrc",
    ),
    *("eslintignore", "eslintrc", "flake8", "gitattributes", "gitconfig", "gitignore", "gitkeep", "gitlab-ci"),
    *("gitmodules", "htaccess", "inputrc", "mailmap", "node-version", "npmignore", "npmrc", "nvmrc", "prettierrc"),
    *("pre-commit-config", "profile", "pylintrc", "pypirc", "python-version", "ruby-version", "rustfmt", "stylelintrc"),
    *("tmux", "tool-versions", "travis", "vimrc", "yarnrc", "zprofile", "zshenv", "zshrc"),
)
"""Configuration files whose leading dot is part of the name, even with a suffix such as `.env.local`."""

_DOTFILE = re.compile(rf"(?ai)\.(?:{'|'.join(DOTFILES)})(?:\.[^.\s]|$)")
_DROPPED = re.compile(f"[{BIDI}\u2028\u2029\ufeff]")
_DEVICES = re.compile(r"(?i)^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?=$|[.\s])")
_TOKEN = re.compile(r"[^A-Za-z0-9!#$&+.^_`|~ ()\[\]{}@,;=-]")


def clean_filename(raw: str | None, fallback: str = "") -> str:
    """Return a safe label for an untrusted file name, or `fallback` if nothing remains. This function is idempotent.

    The result has no path, no control or bidi characters, no lone surrogates, and no leading or trailing dots and
    spaces (except for the dot of `DOTFILES`). Windows device names get an underscore prefix. The result is in NFC and
    has at most 255 bytes of UTF-8, including its extension.
    """
    name = unicodedata.normalize("NFC", (raw or "").replace("\\", "/").rsplit("/", 1)[-1])
    name = name.translate({ord(char): None for char in set(name) if unicodedata.category(char) in ("Cc", "Cs")})
    name = _trim(_DROPPED.sub("", name))
    name = _cut(unicodedata.normalize("NFC", name))
    if _DEVICES.match(name):
        name = _cut(f"_{name}")
    return name or fallback


def content_disposition(filename: str | None, disposition: str = "attachment") -> str:
    """Return a `Content-Disposition` value (RFC 6266). It contains `filename*` (RFC 8187) if the name is not ASCII."""
    name = clean_filename(filename)
    if not name:
        return disposition
    ascii_name = _TOKEN.sub("_", unicodedata.normalize("NFKD", name))
    header = f'{disposition}; filename="{ascii_name}"'
    if ascii_name == name and "%" not in name:
        return header
    return f"{header}; filename*=UTF-8''{quote(name, safe='!#$&+-.^_`|~')}"


def _trim(name: str) -> str:
    # Windows drops trailing dots and spaces. One leading dot is preserved for names like `.gitignore` (see `DOTFILES`).
    start, end = 0, len(name)
    while start < end and (name[start] == "." or name[start].isspace()):
        start += 1
    while end > start and (name[end - 1] == "." or name[end - 1].isspace()):
        end -= 1
    keeps_dot = start > 0 and name[:start].strip() == "." and _DOTFILE.match(name[start - 1 : end])
    return name[start - 1 if keeps_dot else start : end]


def _cut(name: str) -> str:
    if len(name.encode()) <= MAX_BYTES:
        return name
    stem, dot, extension = name.rpartition(".")
    suffix = f".{extension}" if dot and stem and len(extension.encode()) <= 16 else ""
    shortened = (stem if suffix else name).encode()[: MAX_BYTES - len(suffix.encode())].decode(errors="ignore")
    return _trim(shortened + suffix)
