"""Extract an attachment from an e-mail. Runs only in the extraction process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO

from artifacts.extract.mail import eml_attachment
from artifacts.extract.outlook import msg_attachment
from artifacts.extract.reading import RefusedError

READERS = {"eml": eml_attachment, "mht": eml_attachment, "msg": msg_attachment}


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return an attachment's bytes with its name and type.

    Raise `RefusedError` (`unsupported`) if the attachment does not exist or has no bytes.
    """
    found = READERS[options["reader"]](source, int(options["number"]))
    if found is None or not found[2]:
        raise RefusedError("unsupported")
    name, mime_type, data = found
    return {"filename": name, "mime_type": mime_type}, data
