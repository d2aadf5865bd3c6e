"""Adapt pages to the site: links out of the documentation become text, and code blocks retain only their language."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
# The runbook's tests read words after the language, such as `sh run agent`. With these, MkDocs would not recognise a
# code block.
FENCE = re.compile(r"^( *```\w+) [^\n`]*$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def keep_inside(match: re.Match[str]) -> str:
        leaves = posixpath.normpath(posixpath.join(folder, match[2])).startswith("..")
        return match[1] if leaves else match[0]

    return FENCE.sub(r"\1", LINK.sub(keep_inside, markdown))
