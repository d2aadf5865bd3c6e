"""Decide which provider origins may be called: public https, and others only if the deployment lists them.

The check of a URL needs no I/O. In addition, the resolved IP addresses are checked for every connection, to prevent DNS
rebinding. The text of a refusal names the setting to change.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit, urlunsplit

from capabilities.core.translatable import translatable

SETTING = "ROUTING_ADMIN_ALLOWED_ORIGINS"
EMBEDDED = "echo://local"
"""The origin of the embedded echo provider, the only one that needs no network access."""

UNUSABLE = translatable("The endpoint is not usable: %(reason)s. Write it as https://host/path.")
NOT_ALLOWED = translatable(
    "%(origin)s is not allowed: %(reason)s. To allow it, add %(origin)s to the setting %(setting)s (comma "
    "separated) and restart."
)
DEFAULT_PROXY, NO_PROXY = "default", "none"
"""Values of a provider's proxy field that are not URLs."""
BAD_PROXY = translatable(
    "The outgoing proxy is not usable. Write default, none, or a URL that begins with http:// or https://."
)
PROXY_REFUSED = translatable("The outgoing proxy: %(reason)s")

PLAIN_HTTP = translatable("it is plain http")
READS_KEY = translatable("it would read the key, since the endpoint is plain http")
NO_URL = translatable("it is not an http or https URL")
NO_ADDRESS = translatable("its host does not resolve")
NOT_PUBLIC = translatable("%(address)s is not a public address")
RESOLVES = translatable("its host resolves to %(address)s, which is not a public address")
OTHER_PORT = translatable("its port %(port)s is not 443 or 80")
NUMERIC = translatable("its host looks like an IP address but is not valid")
PRIVATE = translatable("its host is a private name")
MALFORMED = {
    "space": translatable("it contains a space or a control character"),
    "backslash": translatable("it contains a backslash"),
    "host": translatable("it has no host"),
    "user": translatable("it contains a user name or password"),
    "fragment": translatable("it contains a fragment"),
    "ascii": translatable("its host is not plain ASCII"),
    "character": translatable("its host contains a character not allowed in host names"),
    "port": translatable("its port is not a number from 0 to 65535"),
}
"""Reasons why a malformed URL is refused."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"https": 443, "http": 80}
PUBLIC_PORTS = (443, 80)
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet")

# Networks that are reserved, belong to a cloud's internal network, or would allow bypassing the check, although
# `ipaddress` classifies them as global.
NEVER_PUBLIC = tuple(
    ipaddress.ip_network(text)
    for text in (
        *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32", "64:ff9b:1::/48", "fec0::/10", "2001::/32"),
        *("100:0:0:1::/64", "3fff::/20", "5f00::/16"),
    )
)
NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
COMPATIBLE = ipaddress.IPv6Network("::/96")
TRANSLATED = ipaddress.IPv6Network("::ffff:0:0:0/96")
"""The network of IPv4-translated addresses (RFC 2765)."""
ISATAP = (0x00005EFE, 0x02005EFE)
"""ISATAP identifiers, which precede the IPv4 address in the lower half of an IPv6 tunnel address (RFC 5214)."""
NUMERIC_LABEL = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
"""Pattern for a numeric last label. Libraries may parse a host name with such a label as an IP address, but not all as
the same one."""
_SPACE_OR_CONTROL = re.compile(r"[\0-\x20\x7f]")
HOST = re.compile(r"[a-z0-9_.-]*|[a-f0-9:.]*", re.IGNORECASE | re.ASCII)
"""Pattern for a host name or an IP address. IPvFuture addresses (RFC 3986, 3.2.2) are not accepted, because some
parsers read them as names."""


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The origins that the deployment allows, as `scheme://host:port`. `everything` is set if `*` is listed."""

    origins: frozenset[str] = frozenset()
    everything: bool = False

    def lists(self, origin: str) -> bool:
        return self.everything or origin in self.origins


def parse_policy(setting: str) -> OriginPolicy:
    """Parse the setting: origins separated by commas, or `*` for all. Paths are ignored."""
    entries = [entry.strip() for entry in setting.split(",") if entry.strip()]
    origins = (parse_origin(entry) for entry in entries if entry != "*")
    return OriginPolicy(frozenset(origin for origin in origins if origin), "*" in entries)


def parse_origin(url: str) -> str | None:
    """Return a URL's `scheme://host:port` in lower case, always with the port, or None if it is not http(s)."""
    parts = _split(url)
    if parts is None or parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    # A trailing dot in a host name does not change the host.
    host = parts.hostname.rstrip(".").lower()
    shown_host = f"[{host}]" if ":" in host else host
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError:
        return None
    return f"{parts.scheme}://{shown_host}:{port}"


def is_embedded(url: str) -> bool:
    return url == EMBEDDED or url.startswith(EMBEDDED + "/")


def refuse_url(url: str, policy: OriginPolicy) -> str | None:
    """Return a sentence that states why a provider at this URL must not be called, or None if it may be called."""
    if is_embedded(url):
        return None
    malformed = _malformed(url)
    if malformed:
        return translatable(UNUSABLE, reason=malformed)
    origin = parse_origin(url)
    if origin is None:
        return translatable(UNUSABLE, reason=NO_URL)
    if policy.lists(origin):
        return None
    reason = _not_public(urlsplit(url))
    return _sentence(origin, reason) if reason else None


def find_malformation(url: str) -> str | None:
    """Return a clause that states why a URL is malformed or ambiguous, or None if all parsers agree on its meaning."""
    return None if is_embedded(url) else _malformed(url)


def refuse_proxy(proxy: str, policy: OriginPolicy, own_proxy: str = "", endpoint: str = "") -> str | None:
    """Return a sentence that states why a provider must not be called through this proxy, or None if it may be.

    A proxy receives every request, so its URL is checked like an endpoint. The URL may contain a user name and a
    password. `own_proxy` is the deployment's proxy, which is not checked. If the `endpoint` uses plain http, the proxy
    can read the provider's key, so the deployment must explicitly allow the proxy's origin.
    """
    if proxy in (DEFAULT_PROXY, NO_PROXY, own_proxy):
        return None
    parts = _split(proxy)
    if parts is None or parts.scheme not in DEFAULT_PORTS or _unreadable(proxy):
        return translatable(BAD_PROXY)
    # Remove the credentials, which are allowed in a proxy's URL but not in an endpoint's URL.
    bare_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    reason, origin = refuse_url(bare_url, policy), parse_origin(bare_url) or ""
    if reason is None and endpoint.lower().startswith("http://") and not policy.lists(origin):
        reason = _sentence(origin, READS_KEY)
    return translatable(PROXY_REFUSED, reason=reason) if reason else None


def check_addresses(url: str, addresses: Iterable[str], policy: OriginPolicy) -> str | None:
    """Return why no connection to these addresses is allowed, or None if all are public or the origin is listed."""
    origin = parse_origin(url) or url
    if policy.lists(origin):
        return None
    resolved = list(addresses)
    # All addresses must be public, because a connection may use any of them.
    for text in resolved:
        if not is_public(text):
            return _sentence(origin, translatable(RESOLVES, address=text))
    return None if resolved else _sentence(origin, NO_ADDRESS)


def is_public(text: str) -> bool:
    """Return whether an IP address, and any IPv4 address embedded in it, is on the public internet."""
    try:
        # Remove the zone, as in `fe80::1%eth0`.
        address = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return False
    return all(_is_plainly_public(form) for form in _forms(address))


def _forms(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    # An IPv6 address may contain an IPv4 address, which must be public, too.
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    forms: list[Address] = []
    if address.sixtofour is not None:
        forms.append(address.sixtofour)
    lowest = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    # An address in these networks is only another form of the embedded IPv4 address.
    if any(address in network for network in (NAT64, COMPATIBLE, TRANSLATED)):
        return [lowest]
    if int(address) >> 32 & 0xFFFFFFFF in ISATAP:
        forms.append(lowest)
    return [address, *forms]


def _is_plainly_public(address: Address) -> bool:
    reserved = any(address.version == network.version and address in network for network in NEVER_PUBLIC)
    return address.is_global and not address.is_multicast and not reserved


def _split(url: str) -> SplitResult | None:
    try:
        return urlsplit(url)
    except ValueError:
        return None


def _unreadable(url: str) -> str | None:
    # URL parsers disagree about these characters: some drop control characters, and some treat a backslash as a slash.
    if _SPACE_OR_CONTROL.search(url):
        return MALFORMED["space"]
    return MALFORMED["backslash"] if "\\" in url else None


def _malformed(url: str) -> str | None:
    unreadable = _unreadable(url)
    if unreadable:
        return unreadable
    parts = _split(url)
    if parts is None or not parts.netloc:
        return MALFORMED["host"]
    if "@" in parts.netloc:
        return MALFORMED["user"]
    if "#" in url:
        return MALFORMED["fragment"]
    host = parts.hostname or ""
    if not host.isascii() or "%" in host:
        return MALFORMED["ascii"]
    if not HOST.fullmatch(host) or ("[" in parts.netloc) != (":" in host):
        return MALFORMED["character"]
    try:
        _ = parts.port
    except ValueError:
        return MALFORMED["port"]
    return None


def _not_public(parts: SplitResult) -> str | None:
    if parts.scheme != "https":
        return PLAIN_HTTP
    port = parts.port or 443
    if port not in PUBLIC_PORTS:
        return translatable(OTHER_PORT, port=port)
    return _host_not_public((parts.hostname or "").rstrip(".").lower())


def _host_not_public(host: str) -> str | None:
    try:
        address = str(ipaddress.ip_address(host))
    except ValueError:
        return _name_not_public(host)
    return None if is_public(address) else translatable(NOT_PUBLIC, address=address)


def _name_not_public(host: str) -> str | None:
    if NUMERIC_LABEL.fullmatch(host.rsplit(".", 1)[-1]):
        return NUMERIC
    if host == "localhost" or "." not in host or host.endswith(PRIVATE_SUFFIXES):
        return PRIVATE
    return None


def _sentence(origin: str, reason: str) -> str:
    return translatable(NOT_ALLOWED, origin=origin, reason=reason, setting=SETTING)
