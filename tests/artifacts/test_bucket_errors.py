"""A bucket that is missing, denies access or does not respond: one clear message, no partial object, no secret."""

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
from artifacts.core.errors import StoreAwayError
from artifacts.core.store import ByteStore, Upload
from artifacts.storage import bucket_client
from artifacts.storage.bucket_store import BucketStore
from tests.engines.s3 import CREDENTIALS, s3_server

SHA = "0" * 64
LARGE = bytes(6 * 1024 * 1024)

ACTS: dict[str, Callable[[ByteStore], Any]] = {
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


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def store_at(bucket: Bucket, tmp_path: Path) -> BucketStore:
    return BucketStore(bucket, tmp_path)


def finish_with(upload: Upload, data: bytes) -> None:
    upload.write(data)
    upload.finish()


@pytest.mark.parametrize("act", ACTS)
def test_a_bucket_that_is_not_there_is_told_by_every_call(tmp_path: Path, act: str) -> None:
    """It is not reported as missing bytes: uploading them again would not help."""
    store = store_at(replace(s3_server().bucket, name="nobody-made-it"), tmp_path)
    with pytest.raises(StoreAwayError) as told:
        ACTS[act](store)
    assert "The bucket s3://nobody-made-it at" in told.value.details
    assert "ROUTING_ADMIN_ARTIFACTS_URL" in told.value.details


def test_a_service_that_hangs_is_away_while_it_is_still_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage starts when the check began, so the alert does not wait for the call to end."""
    monkeypatch.setattr(bucket_client, "UNANSWERED", timedelta(0))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = replace(s3_server().bucket, endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        store, began = store_at(place, tmp_path), datetime.now(UTC)

        def check() -> None:
            with suppress(StoreAwayError):
                store.check()

        assert store.outage is None
        threading.Thread(target=check, daemon=True).start()
        # Now the check is connected and waits for a response.
        silent.accept()
        assert store.outage is not None
        assert began <= store.outage.since <= datetime.now(UTC)
        assert "is not responding" in store.outage.sentence


@pytest.mark.parametrize("act", ACTS)
def test_wrong_credentials_are_told_by_every_call_and_not_repeated(tmp_path: Path, act: str) -> None:
    """The service's response may contain signed data, so only its error code is reported."""
    store = store_at(s3_server().place(), tmp_path)
    with s3_server().checking_credentials(), pytest.raises(StoreAwayError) as told:
        ACTS[act](store)
    assert "rejects the credentials" in told.value.details
    assert "AWS_" in told.value.details
    for word in (CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"], "<", "Debug"):
        assert word not in told.value.details
    assert told.value.__cause__ is None


def test_credentials_that_nobody_set_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the environment nor the machine's role has credentials."""
    bucket = s3_server().place()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(StoreAwayError) as told:
        store_at(bucket, tmp_path).check()
    assert "There are no credentials" in told.value.details
    assert "AWS_SECRET_ACCESS_KEY" in told.value.details


@pytest.mark.parametrize("act", ACTS)
def test_a_service_that_does_not_answer_is_told_by_every_call(tmp_path: Path, act: str) -> None:
    """The message for callers has no address; the details for operators do."""
    store = store_at(replace(s3_server().place(), endpoint=f"http://127.0.0.1:{closed_port()}"), tmp_path)
    with pytest.raises(StoreAwayError) as told:
        ACTS[act](store)
    assert "is not responding" in told.value.details
    assert "127.0.0.1" in told.value.details
    assert "127.0.0.1" not in str(told.value)


def test_while_a_service_is_away_others_are_told_at_once_and_it_is_found_again(tmp_path: Path) -> None:
    """After a failed call others fail at once, and one of them soon tries again."""
    bucket = s3_server().place()
    store = store_at(replace(bucket, endpoint=f"http://127.0.0.1:{closed_port()}"), tmp_path)
    for _ in range(20):
        with pytest.raises(StoreAwayError):
            store.check()
    assert store.client.is_silent
    back = store_at(bucket, tmp_path)
    back.check()
    assert not back.client.is_silent


def test_a_large_upload_whose_service_goes_away_leaves_nothing(tmp_path: Path) -> None:
    """The upload's parts are aborted, and no object has its hash."""
    bucket = s3_server().place()
    store = store_at(bucket, tmp_path)
    upload = store.begin_upload()
    upload.write(LARGE)
    with s3_server().checking_credentials(), pytest.raises(StoreAwayError):
        finish_with(upload, LARGE)
    assert s3_server().keys(bucket) == []
