"""The table in docs/compatibility.md; with that path as its argument, this module writes it anew."""

from __future__ import annotations

import sys
from pathlib import Path

from capabilities.core.protocols.parameters import OTHER_FIELD, OTHER_PARAMETER, PARAMETERS, Parameter

BEGIN = "<!-- written by capabilities.core.protocols.parameter_document -->\n"
END = "<!-- end of what is written -->\n"
HEAD = "| parameter or part | openai | openai-responses | anthropic | gemini | echo | when |\n" + 7 * "|---" + "|\n"


def table() -> str:
    """The table alone."""
    return HEAD + "".join(_line(row) for row in (*PARAMETERS.values(), OTHER_PARAMETER, OTHER_FIELD))


def _line(row: Parameter) -> str:
    name = row.name if " " in row.name else f"`{row.name}`"
    cells = (name, row.openai, row.openai_responses, row.anthropic, row.gemini, row.echo, row.note)
    return f"| {' | '.join(cells)} |\n"


def with_table(text: str) -> str:
    """The document with the table as it is now. Raises `ValueError` for one without its two marks."""
    return put_between(text, BEGIN, END, table())


def put_between(text: str, begin: str, end: str, words: str) -> str:
    """The text with these words between two marks. Raises `ValueError` for one that lacks them."""
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError("the document has no place for the table")
    return f"{before}{begin}\n{words}\n{end}{after}"


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(with_table(document.read_text(encoding="utf-8")), encoding="utf-8")
