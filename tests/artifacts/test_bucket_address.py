"""A bucket's URL is parsed. An invalid URL is rejected with a one-line error that contains no secret."""

from __future__ import annotations

import environ
import pytest

from artifacts.core.bucket import Bucket, BucketAddressError, parse_bucket
from routing_admin.environment import artifacts_bucket

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    ("url", "bucket"),
    [
        ("s3://files", Bucket(name="files", is_virtual=True)),
        ("s3://files/a/b/", Bucket(name="files", prefix="a/b", is_virtual=True)),
        ("s3://files?region=eu-central-1&style=path", Bucket(name="files", region="eu-central-1")),
        (
            "s3://files/p?endpoint_url=https://s3.example.com",
            Bucket(name="files", prefix="p", endpoint="https://s3.example.com"),
        ),
        (
            "s3://files?endpoint_url=http%3A%2F%2Fminio:9000&allow_http=true&style=virtual",
            Bucket(name="files", prefix="", endpoint="http://minio:9000", is_virtual=True, allows_http=True),
        ),
        (
            "s3://files?endpoint_url=http://127.0.0.1:9000",
            Bucket(name="files", prefix="", endpoint="http://127.0.0.1:9000", allows_http=True),
        ),
    ],
)
def test_bucket_url_is_parsed_into_bucket_prefix_and_endpoint(url: str, bucket: Bucket) -> None:
    """By default, AWS uses virtual-hosted addressing and other endpoints use path-style addressing."""
    assert parse_bucket(url) == bucket


def test_endpoint_missing_in_the_url_is_read_from_the_environment() -> None:
    """`AWS_ENDPOINT_URL_S3` has precedence over `AWS_ENDPOINT_URL`, as in other programs."""
    environment = {"AWS_ENDPOINT_URL": "https://all.example.com", "AWS_ENDPOINT_URL_S3": "https://s3.example.com"}
    assert parse_bucket("s3://files", environment).endpoint == "https://s3.example.com"
    assert (
        parse_bucket("s3://files?endpoint_url=https://own.example.com", environment).endpoint
        == "https://own.example.com"
    )


def test_virtual_host_style_puts_the_bucket_into_the_host_name() -> None:
    bucket = parse_bucket("s3://files/p?endpoint_url=https://s3.example.com:9000&style=virtual")
    assert bucket.base_url == "https://files.s3.example.com:9000"
    assert str(bucket) == "s3://files/p at https://s3.example.com:9000"


@pytest.mark.parametrize(
    "url",
    [
        *("", "files", "http://files", "s3://", "s3://F", "s3:///prefix", "s3://a_b", "s3://files#x"),
        *(f"s3://key:{SECRET}@files", f"s3://files?secret_access_key={SECRET}", f"s3://files?endpoint_url={SECRET}"),
        *(f"s3://files?endpoint_url=https://u:{SECRET}@host", "s3://files?endpoint_url=http://minio:9000"),
        *("s3://files?endpoint_url=https://host/path", "s3://files?endpoint_url=https://host:port"),
        *("s3://files?style=other", f"s3://files?allow_http={SECRET}"),
    ],
)
def test_url_without_a_bucket_is_rejected_without_echoing_its_secret(url: str) -> None:
    with pytest.raises(BucketAddressError) as error:
        parse_bucket(url)
    assert SECRET not in str(error.value)
    assert "\n" not in str(error.value)


def test_invalid_bucket_url_exits_with_the_variable_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTING_ADMIN_ARTIFACTS_URL", f"s3://files?token={SECRET}")
    with pytest.raises(SystemExit, match="ROUTING_ADMIN_ARTIFACTS_URL names no bucket") as error:
        artifacts_bucket(environ.Env())
    assert SECRET not in str(error.value)
    monkeypatch.delenv("ROUTING_ADMIN_ARTIFACTS_URL")
    assert artifacts_bucket(environ.Env()) is None
