"""Decide which provider origins may be called: public https, and others only if the deployment lists them.

The check of a URL is pure. The addresses its host resolves to are checked again at every connection, so DNS rebinding
gains nothing. A refusal is one sentence that names the setting to change.
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
"""The only origin without a network: the embedded echo provider."""

UNUSABLE = translatable("The endpoint is not usable: %(reason)s. Write it as https://host/path.")
NOT_ALLOWED = translatable(
    "%(origin)s is not allowed: %(reason)s. To allow it, add %(origin)s to the setting %(setting)s (comma "
    "separated) and restart."
)
DEFAULT_PROXY, NO_PROXY = "default", "none"
"""A provider's values in place of a proxy's URL."""
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
"""Reasons why a URL is refused."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

DEFAULT_PORTS = {"https": 443, "http": 80}
PUBLIC_PORTS = (443, 80)
PRIVATE_SUFFIXES = (".localhost", ".local", ".internal", ".lan", ".home.arpa", ".intranet")

# Global according to ipaddress, but reserved, internal to a cloud, or a way around the check.
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
"""RFC 2765: an IPv4 address behind a translator."""
ISATAP = (0x00005EFE, 0x02005EFE)
"""RFC 5214: the value before the IPv4 address in the lower half of a tunnel's address."""
NUMERIC_LABEL = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)", re.IGNORECASE)
"""The last label of a host that some libraries parse as an address, not all as the same one."""
HOST = re.compile(r"[a-z0-9_.-]*|[a-f0-9:.]*", re.IGNORECASE | re.ASCII)
"""A name, or an address in brackets. An address of a future version (RFC 3986, 3.2.2) is a name to some parsers."""


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The deployment's allowed origins, written `scheme://host:port`; `everything` for `*`."""

    origins: frozenset[str] = frozenset()
    everything: bool = False

    def lists(self, origin: str) -> bool:
        return self.everything or origin in self.origins


def policy_of(setting: str) -> OriginPolicy:
    """Return the policy in the setting: origins separated by commas, `*` for all. Paths are ignored."""
    entries = [entry.strip() for entry in setting.split(",") if entry.strip()]
    origins = (origin_of(entry) for entry in entries if entry != "*")
    return OriginPolicy(frozenset(origin for origin in origins if origin), "*" in entries)


def origin_of(url: str) -> str | None:
    """Return `scheme://host:port` of a URL in lower case with its port, or None if it is no http(s) URL."""
    parts = _split(url)
    if parts is None or parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return None
    # A trailing dot names the same host.
    host = parts.hostname.rstrip(".").lower()
    shown_host = f"[{host}]" if ":" in host else host
    try:
        port = parts.port or DEFAULT_PORTS[parts.scheme]
    except ValueError:
        return None
    return f"{parts.scheme}://{shown_host}:{port}"


def is_embedded(url: str) -> bool:
    return url == EMBEDDED or url.startswith(EMBEDDED + "/")


def refusal(url: str, policy: OriginPolicy) -> str | None:
    """Return why a provider at this URL may not be called, as one sentence, or None if it may."""
    if is_embedded(url):
        return None
    malformed = _malformed(url)
    if malformed:
        return translatable(UNUSABLE, reason=malformed)
    origin = origin_of(url)
    if origin is None:
        return translatable(UNUSABLE, reason=NO_URL)
    if policy.lists(origin):
        return None
    reason = _not_public(urlsplit(url))
    return _sentence(origin, reason) if reason else None


def malformation(url: str) -> str | None:
    """Return why a URL is ambiguous, as half a sentence, or None if all parsers read it alike."""
    return None if is_embedded(url) else _malformed(url)


def proxy_refusal(proxy: str, policy: OriginPolicy, own_proxy: str = "", endpoint: str = "") -> str | None:
    """Return why a provider may not be called through its `proxy`, as one sentence, or None if it may.

    A proxy sees every request, so it is checked like an endpoint. Its URL may contain a user and a password.
    `own_proxy` is the deployment's proxy, which is not checked. A proxy for a plain http `endpoint` can read the key,
    so it must be listed.
    """
    if proxy in (DEFAULT_PROXY, NO_PROXY, own_proxy):
        return None
    parts = _split(proxy)
    if parts is None or parts.scheme not in DEFAULT_PORTS or _unreadable(proxy):
        return translatable(BAD_PROXY)
    # Without the credentials, which a proxy's URL may contain and an endpoint's may not.
    bare_url = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    reason, origin = refusal(bare_url, policy), origin_of(bare_url) or ""
    if reason is None and endpoint.lower().startswith("http://") and not policy.lists(origin):
        reason = _sentence(origin, READS_KEY)
    return translatable(PROXY_REFUSED, reason=reason) if reason else None


def check_addresses(url: str, addresses: Iterable[str], policy: OriginPolicy) -> str | None:
    """Return why a connection to these resolved addresses is refused, or None if all are public."""
    origin = origin_of(url) or url
    if policy.lists(origin):
        return None
    resolved = list(addresses)
    # All must be public: a connection may use any of them.
    for text in resolved:
        if not is_public(text):
            return _sentence(origin, translatable(RESOLVES, address=text))
    return None if resolved else _sentence(origin, NO_ADDRESS)


def is_public(text: str) -> bool:
    """Return whether an address is on the public internet, also in forms that embed an IPv4 address."""
    try:
        # Without the zone (`fe80::1%eth0`).
        address = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return False
    return all(_is_plainly_public(form) for form in _forms(address))


def _forms(address: Address) -> list[Address]:
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    # An IPv6 address may lead to an IPv4 one, which must be public as well.
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    forms: list[Address] = []
    if address.sixtofour is not None:
        forms.append(address.sixtofour)
    lowest = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    # In these networks the address is only another form of the IPv4 address.
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
    # URL parsers disagree on these: some drop a control character, some treat a backslash as a slash.
    if any(ord(char) <= 32 or ord(char) == 127 for char in url):
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
