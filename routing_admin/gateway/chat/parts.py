"""Read message parts that contain a file, in OpenAI's formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from artifacts.core.artifact import REF_PREFIX
from artifacts.core.detection.kinds import OCTET_STREAM, filename_mime, mime_kind
from artifacts.core.filenames import clean_filename
from capabilities.core.message import FilePart
from routing_admin.gateway.fields import (
    Object,
    check_object,
    missing_field_error,
    read_text,
    require_text,
)
from routing_admin.gateway.media import (
    ANY_AUDIO,
    ANY_IMAGE,
    ANY_VIDEO,
    AUDIO_TYPES,
    References,
    bytes_part,
    count_pages,
    data_url_part,
    decode_base64,
    url_file,
)


def _read_image(part: Object, path: str, references: References) -> FilePart:
    return _read_url(part, path, references, "image_url", ANY_IMAGE)


def _read_video(part: Object, path: str, references: References) -> FilePart:
    return _read_url(part, path, references, "video_url", ANY_VIDEO)


def _read_url(part: Object, path: str, references: References, key: str, description: FilePart) -> FilePart:
    # Clients send the URL as a string, or in an object together with `detail`.
    inner = part.get(key)
    inner_path = f"{path}.{key}"
    if isinstance(inner, str):
        return url_file(inner, inner_path, references, description)
    if inner is None:
        raise missing_field_error(inner_path)
    file = url_file(
        require_text(check_object(inner, inner_path), "url", inner_path), f"{inner_path}.url", references, description
    )
    return replace(file, detail=read_text(inner, "detail", inner_path))


def _read_audio(part: Object, path: str, references: References) -> FilePart:
    inner_path = f"{path}.input_audio"
    if part.get("input_audio") is None:
        raise missing_field_error(inner_path)
    inner = check_object(part["input_audio"], inner_path)
    data = require_text(inner, "data", inner_path)
    if data.startswith(REF_PREFIX):
        return references.part(data, f"{inner_path}.data", ANY_AUDIO)
    if data[:5].lower() == "data:":
        return data_url_part(data, f"{inner_path}.data")
    format_name = require_text(inner, "format", inner_path)
    mime_type = AUDIO_TYPES.get(format_name.lower(), f"audio/{format_name.lower()}")
    return bytes_part(decode_base64(data, f"{inner_path}.data"), mime_type, None)


def _read_file(part: Object, path: str, references: References) -> FilePart:
    inner_path = f"{path}.file"
    if part.get("file") is None:
        raise missing_field_error(inner_path)
    inner = check_object(part["file"], inner_path)
    file = count_pages(_find_file(inner, inner_path, references))
    return replace(file, detail=read_text(inner, "detail", inner_path))


def _find_file(inner: Object, path: str, references: References) -> FilePart:
    # Results of the tool get_artifact contain the file in `data` and its type in `mimeType`.
    ref = read_text(inner, "file_id", path)
    if ref is not None:
        return references.part(ref, f"{path}.file_id", _guess_file(read_text(inner, "filename", path)))
    key = "file_data" if inner.get("file_data") is not None else "data"
    data, filename = read_text(inner, key, path), read_text(inner, "filename", path)
    if data is None:
        raise missing_field_error(f"{path}.file_data")
    if data[:5].lower() == "data:":
        return data_url_part(data, f"{path}.{key}", filename)
    return bytes_part(decode_base64(data, f"{path}.{key}"), read_text(inner, "mimeType", path), filename)


def _guess_file(filename: str | None) -> FilePart:
    mime_type = filename_mime(filename) or OCTET_STREAM
    return FilePart(mime_kind(mime_type), mime_type, clean_filename(filename) or None)


PARTS: Mapping[str, Callable[[Object, str, References], FilePart]] = MappingProxyType(
    {"image_url": _read_image, "video_url": _read_video, "input_audio": _read_audio, "file": _read_file}
)
