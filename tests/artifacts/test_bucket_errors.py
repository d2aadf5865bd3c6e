"""If a bucket is missing, denies access or does not respond, the message is clear and contains no secret."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from artifacts.core.bucket import Bucket
from artifacts.core.errors import StoreUnavailableError
from artifacts.core.store import ByteStore, Upload
from artifacts.storage import bucket_client
from artifacts.storage.bucket_store import BucketStore
from tests.engines.s3 import CREDENTIALS, s3_server
from tests.processes import free_port

SHA = "0" * 64
LARGE = bytes(6 * 1024 * 1024)

CALLS: dict[str, Callable[[ByteStore], Any]] = {
    "check": lambda store: store.check(),
    "put": lambda store: store.put([b"x"]),
    "put a large one": lambda store: store.put([LARGE]),
    "open": lambda store: store.open_blocks(SHA),
    "exists": lambda store: store.exists(SHA),
    "size": lambda store: store.size(SHA),
    "verify": lambda store: store.verify(SHA),
    "delete": lambda store: store.delete(SHA),
    "list": lambda store: list(store.digests()),
    "sweep": lambda store: store.sweep(),
}


def store_at(bucket: Bucket, tmp_path: Path) -> BucketStore:
    return BucketStore(bucket, tmp_path)


def finish_with(upload: Upload, data: bytes) -> None:
    upload.write(data)
    upload.finish()


@pytest.mark.parametrize("call", CALLS)
def test_every_call_reports_a_missing_bucket(tmp_path: Path, call: str) -> None:
    """The bytes must not be reported as missing: without a bucket, uploading them again would not help."""
    store = store_at(replace(s3_server().bucket, name="missing-bucket"), tmp_path)
    with pytest.raises(StoreUnavailableError) as error:
        CALLS[call](store)
    assert "The bucket s3://missing-bucket at" in error.value.details
    assert "ROUTING_ADMIN_ARTIFACTS_URL" in error.value.details


def test_outage_begins_while_a_check_of_a_hanging_bucket_still_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage counts from the start of the check, so that the alert is not late."""
    monkeypatch.setattr(bucket_client, "CHECK_TIMEOUT", timedelta(0))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        bucket = replace(s3_server().bucket, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        store, started = store_at(bucket, tmp_path), datetime.now(UTC)

        def check() -> None:
            with suppress(StoreUnavailableError):
                store.check()

        assert store.outage is None
        threading.Thread(target=check, daemon=True).start()
        # From here on, the check for outages is connected and waits for a response.
        silent.accept()
        assert store.outage is not None
        assert started <= store.outage.since <= datetime.now(UTC)
        assert "is not responding" in store.outage.sentence


@pytest.mark.parametrize("call", CALLS)
def test_every_call_reports_wrong_credentials_without_echoing_the_credentials(tmp_path: Path, call: str) -> None:
    """The response may contain signed data, so only its error code is reported."""
    store = store_at(s3_server().new_prefix(), tmp_path)
    with s3_server().checking_credentials(), pytest.raises(StoreUnavailableError) as error:
        CALLS[call](store)
    assert "rejects the credentials" in error.value.details
    assert "AWS_" in error.value.details
    for secret in (CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"], "<", "Debug"):
        assert secret not in error.value.details
    assert error.value.__cause__ is None


def test_missing_credentials_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = s3_server().new_prefix()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailableError) as error:
        store_at(bucket, tmp_path).check()
    assert "There are no credentials" in error.value.details
    assert "AWS_SECRET_ACCESS_KEY" in error.value.details


@pytest.mark.parametrize("call", CALLS)
def test_address_of_an_unresponsive_bucket_is_shown_to_operators_only(tmp_path: Path, call: str) -> None:
    store = store_at(replace(s3_server().new_prefix(), endpoint=f"http://127.0.0.1:{free_port()}"), tmp_path)
    with pytest.raises(StoreUnavailableError) as error:
        CALLS[call](store)
    assert "is not responding" in error.value.details
    assert "127.0.0.1" in error.value.details
    assert "127.0.0.1" not in str(error.value)


def test_bucket_client_is_silent_after_repeated_calls_without_a_response(tmp_path: Path) -> None:
    bucket = s3_server().new_prefix()
    store = store_at(replace(bucket, endpoint=f"http://127.0.0.1:{free_port()}"), tmp_path)
    for _ in range(20):
        with pytest.raises(StoreUnavailableError):
            store.check()
    assert store.client.is_silent
    recovered = store_at(bucket, tmp_path)
    recovered.check()
    assert not recovered.client.is_silent


def test_large_upload_interrupted_by_an_outage_leaves_no_objects(tmp_path: Path) -> None:
    bucket = s3_server().new_prefix()
    store = store_at(bucket, tmp_path)
    upload = store.begin_upload()
    upload.write(LARGE)
    with s3_server().checking_credentials(), pytest.raises(StoreUnavailableError):
        finish_with(upload, LARGE)
    assert s3_server().keys(bucket) == []
