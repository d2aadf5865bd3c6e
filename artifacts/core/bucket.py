"""The URL of an S3 object store: `s3://bucket/prefix?…`.

The URL contains no secret. Credentials come from the standard `AWS_…` environment variables or from the machine's role.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit

BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
PARAMETERS = ("endpoint_url", "region", "style", "allow_http")
STYLES = ("path", "virtual")
YES, NO = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class BucketAddressError(ValueError):
    """The URL does not name a bucket. The message describes the problem without repeating values from the URL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """An S3 bucket and the key prefix of our objects in it.

    An empty `endpoint` or `region` selects the service's default. If `is_virtual` is True, the bucket name is part of
    the host name instead of the path.
    """

    name: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""
    is_virtual: bool = False
    allows_http: bool = False

    def __str__(self) -> str:
        url = f"s3://{self.name}/{self.prefix}".rstrip("/")
        return f"{url} at {self.endpoint}" if self.endpoint else url

    @property
    def base_url(self) -> str:
        """Return the endpoint's URL. In virtual-hosted style, the bucket name is a subdomain."""
        if not (self.endpoint and self.is_virtual):
            return self.endpoint
        scheme, _, rest = self.endpoint.partition("://")
        return f"{scheme}://{self.name}.{rest}"


def parse_bucket(url: str, environment: Mapping[str, str] | None = None) -> Bucket:
    """Parse a bucket URL.

    `environment` may contain AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL. Raise `BucketAddressError` if the URL is invalid.
    """
    parts = urlsplit(url)
    if parts.scheme != "s3" or not BUCKET_NAME.fullmatch(parts.netloc.rpartition("@")[2]):
        raise BucketAddressError("Write s3://bucket/prefix, with ?endpoint_url=https://host where it is not Amazon's.")
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    unknown = [name for name in parameters if name not in PARAMETERS]
    if unknown or "@" in parts.netloc or parts.fragment:
        raise BucketAddressError(
            f"It takes {', '.join(PARAMETERS)} and nothing else. Credentials belong in AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY."
        )
    variables = environment or {}
    endpoint = (
        parameters.get("endpoint_url") or variables.get("AWS_ENDPOINT_URL_S3") or variables.get("AWS_ENDPOINT_URL", "")
    )
    # Services other than Amazon S3 get path-style URLs by default, because not all of them support virtual-hosted
    # style.
    style = parameters.get("style") or ("path" if endpoint else "virtual")
    if style not in STYLES:
        raise BucketAddressError("style is path or virtual.")
    may_http = _is_yes(parameters.get("allow_http", "no"))
    _check_endpoint(endpoint, may_http)
    region = parameters.get("region", "")
    return Bucket(
        name=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint=endpoint.rstrip("/"),
        region=region,
        is_virtual=style == "virtual",
        allows_http=endpoint[:5] == "http:",
    )


def _is_yes(value: str) -> bool:
    if value.lower() not in (*YES, *NO):
        raise BucketAddressError("allow_http is true or false.")
    return value.lower() in YES


def _check_endpoint(endpoint: str, may_http: bool) -> None:
    if not endpoint:
        return
    try:
        parts = urlsplit(endpoint)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.path.strip("/"):
        raise BucketAddressError("endpoint_url is the address of a service, such as https://s3.example.com:9000.")
    if parts.username is not None:
        raise BucketAddressError("endpoint_url has no user and password; credentials are AWS_ACCESS_KEY_ID and so on.")
    # Over plain http, credentials and files would be sent in clear text.
    if parts.scheme == "http" and not may_http and not _is_loopback(host):
        raise BucketAddressError("endpoint_url is not encrypted. Write https, or add &allow_http=true.")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
