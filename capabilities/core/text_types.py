"""Which MIME types are text to a model, whatever they are called: every model reads them (REQUIREMENTS, decision 3)."""

from __future__ import annotations

TEXT_TYPES = frozenset(
    {
        "application/ecmascript",
        "application/graphql",
        "application/json5",
        "application/sql",
        "application/toml",
        "application/typescript",
        "application/x-httpd-php",
        "application/x-ndjson",
        "application/x-perl",
        "application/x-python-code",
        "application/x-ruby",
        "application/x-sh",
        "application/x-subrip",
        "application/x-tex",
        "application/x-www-form-urlencoded",
        "application/xhtml",
        "application/yaml",
        "application/jsonl",
        "application/x-pem-file",
        "application/postscript",
        "message/rfc822",
        "application/mbox",
    }
)
"""Text under a name that does not begin with `text/` nor end in `+json`, `+xml`, `+yaml`."""


def is_text_mime(mime: str) -> bool:
    """Whether the (cleaned) type is text a model reads as it is; SVG and XML are, RTF is not."""
    return mime.startswith("text/") or mime in TEXT_TYPES or mime.endswith(("+json", "+xml", "+yaml", "/json", "/xml"))
