"""Measure what needs a parser: pages, seconds, pixels. Runs only in the child process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO


def answer(source: BinaryIO, options: Mapping[str, Any]) -> tuple[dict[str, object], bytes]:
    """Return the measures of a file of the given type, or {} if there are none."""
    mime = str(options["mime_type"])
    if mime == "application/pdf":
        return _pdf(source), b""
    if mime.startswith(("audio/", "video/")):
        return _sound(source), b""
    return (_image(source) if mime.startswith("image/") else {}), b""


def _pdf(source: BinaryIO) -> dict[str, object]:
    from pypdf import PdfReader

    reader = PdfReader(source)
    if reader.is_encrypted and not reader.decrypt(""):
        return {"encrypted": True}
    return {"pages": len(reader.pages), "encrypted": False}


def _sound(source: BinaryIO) -> dict[str, object]:
    from tinytag import TinyTag

    seconds = TinyTag.get(file_obj=source, tags=False).duration
    return {"seconds": round(seconds, 3)} if seconds else {}


def _image(source: BinaryIO) -> dict[str, object]:
    from PIL import Image

    from artifacts.extract.images import FORMATS, MAX_PIXELS

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS
    image = Image.open(source, formats=FORMATS)
    return {"width": image.width, "height": image.height}
