"""A local S3 server, one per test process: moto in a thread, started on first use.

It accepts any credentials unless `checking_credentials` is used.
"""

from __future__ import annotations

import atexit
import logging
import os
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from uuid import uuid4

import obstore
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
from obstore.store import S3Store

from artifacts.core.bucket import Bucket

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tester", "AWS_SECRET_ACCESS_KEY": "not-a-secret-at-all", "AWS_REGION": "us-east-1"}


@dataclass(frozen=True)
class S3Server:
    """The server's URL and an existing bucket."""

    url: str
    bucket: Bucket

    def new_prefix(self) -> Bucket:
        """Return the bucket with a new unique prefix."""
        return replace(self.bucket, prefix=f"test/{uuid4().hex}")

    def make_bucket(self, name: str) -> Bucket:
        self._call("PUT", f"/{name}")
        return replace(self.bucket, name=name)

    def raw(self, bucket: Bucket) -> S3Store:
        """Return a client for a bucket and prefix that bypasses the product's artifact store."""
        return S3Store(
            bucket.name,
            prefix=bucket.prefix or None,
            config={"endpoint": self.url},
            client_options={"allow_http": True},
        )

    def keys(self, bucket: Bucket) -> list[str]:
        return sorted(entry["path"] for page in obstore.list(self.raw(bucket)) for entry in page)

    def date(self, bucket: Bucket, key: str, moment: float) -> None:
        """Set an object's modification time to `moment`, in seconds since 1970."""
        stored_bucket = s3_backends[ACCOUNT]["aws"].buckets[bucket.name]
        stored_bucket.keys[f"{bucket.prefix}/{key}".lstrip("/")].last_modified = datetime.fromtimestamp(
            moment, UTC
        ).replace(tzinfo=None)

    def unfinished(self, bucket: Bucket | None = None) -> str:
        return self._call("GET", f"/{(bucket or self.bucket).name}?uploads")

    @contextmanager
    def checking_credentials(self) -> Iterator[None]:
        """Make the server reject all requests within the block: it then checks credentials but knows none."""
        self._call("POST", "/moto-api/reset-auth", b"0")
        try:
            yield
        finally:
            self._call("POST", "/moto-api/reset-auth", b"inf")

    def _call(self, method: str, path: str, body: bytes = b"") -> str:
        request = urllib.request.Request(self.url + path, body, {"Content-Type": "text/plain"}, method=method)
        with urllib.request.urlopen(request) as answer:
            return str(answer.read(), "utf-8")


@cache
def s3_server() -> S3Server:
    os.environ.update(CREDENTIALS)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    atexit.register(server.stop)
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    bucket = Bucket(name="artifacts", endpoint=url, region="us-east-1", allows_http=True)
    s3 = S3Server(url, bucket)
    s3.make_bucket(bucket.name)
    return s3
