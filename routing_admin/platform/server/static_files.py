"""Serve static files under names with a hash of their content, compressed, and cached forever.

collectstatic is not needed, but would produce the same names. The hashes are computed from the files in place, and a
name is valid only while its file has this hash.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Response

DIGITS = 12
"""Number of hexadecimal digits in the hash of a file name."""
MIN_COMPRESSED_BYTES = 200
"""Files smaller than this many bytes are not compressed."""
YEAR = 365 * 24 * 3600
COMPRESSIBLE = re.compile(r"text/|application/(javascript|json)|image/svg")
ACCEPTS_GZIP = re.compile(r"\bgzip\b")


@cache
def hashed_name(name: str) -> str:
    """Return the name with the file's hash, such as `css/app.0123456789ab.css`, or unchanged if there is no file."""
    path = finders.find(name)
    if not isinstance(path, str):
        return name
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()[:DIGITS]
    root, end = os.path.splitext(name)
    return f"{root}.{digest}{end}"


class HashedStorage(StaticFilesStorage):
    """Static files storage whose URLs contain hashed names, except in debug mode."""

    def url(self, name: str | None, force: bool = False) -> str:
        return super().url(name if settings.DEBUG or not name else hashed_name(name))

    def post_process(
        self, paths: Iterable[str], dry_run: bool = False, **options: Any
    ) -> Iterator[tuple[str, str, bool]]:
        for name in paths:
            if not dry_run:
                shutil.copyfile(self.path(name), self.path(hashed_name(name)))
            yield name, hashed_name(name), True


class CompressedFile:
    """A static text file, compressed at its first request by a client that accepts gzip."""

    def __init__(self, plain: Any, path: str) -> None:
        self.plain, self.path = plain, path

    @cached_property
    def content(self) -> bytes:
        return gzip.compress(Path(self.path).read_bytes(), 9, mtime=0)

    def get_response(self, method: str, request_headers: dict[str, str]) -> Any:
        response = self.plain.get_response(method, request_headers)
        headers = [*response.headers, ("Vary", "Accept-Encoding")]
        file = response.file
        # Range requests and 304 responses refer to the uncompressed file.
        if response.status == 200 and ACCEPTS_GZIP.search(request_headers.get("HTTP_ACCEPT_ENCODING", "")):
            if file is not None:
                file.close()
            headers = [header for header in headers if header[0] != "Content-Length"]
            headers += [("Content-Encoding", "gzip"), ("Content-Length", str(len(self.content)))]
            file = None if method == "HEAD" else [self.content]
        return Response(response.status, headers, file)


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # a package without types
    """Serve static files from their source folders; hashed names may be cached for a year, plain names for a minute."""

    FOREVER = YEAR

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        url = request.path_info
        if url.startswith(self.static_prefix) and url not in self.files and not self.autorefresh:
            self.add_requested(url)
        answer: HttpResponseBase = super().__call__(request)
        return answer

    def add_files_from_finders(self) -> None:
        """Register no files at the start, because checking every file would delay the start."""

    def add_requested(self, url: str) -> None:
        """Register a file under the requested URL. A hashed URL must match the file's current content."""
        # Accept only a file's canonical URL: the number of other URLs is unlimited, and each would stay registered.
        if not self.url_is_canonical(url):
            return
        name = url.removeprefix(self.static_prefix)
        path = finders.find(self.get_name_without_hash(name) if self.immutable_file_test("", url) else name)
        if isinstance(path, str) and os.path.isfile(path):
            self.add_file_to_dictionary(url, path)

    def get_static_file(self, path: str, url: str, stat_cache: Any = None) -> Any:
        plain = super().get_static_file(path, url, stat_cache)
        kind = self.media_types.get_type(path)
        is_small = os.path.getsize(path) < MIN_COMPRESSED_BYTES
        return plain if is_small or not COMPRESSIBLE.match(kind) else CompressedFile(plain, path)
