"""Adapt Markdown pages to the documentation site.

Links to files outside the documentation become plain text, and code blocks keep only their language.
"""

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
# In the runbook, a code block's language is followed by words for the tests, as in `sh run agent`. MkDocs would not
# recognise such a code block, so these words are removed.
FENCE = re.compile(r"^( *```\w+) [^\n`]*$", re.MULTILINE)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)

    def keep_inside(match: re.Match[str]) -> str:
        leaves = posixpath.normpath(posixpath.join(folder, match[2])).startswith("..")
        return match[1] if leaves else match[0]

    return FENCE.sub(r"\1", LINK.sub(keep_inside, markdown))
