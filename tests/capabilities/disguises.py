"""Disguised spellings of forbidden addresses: host names, whole URLs, and the addresses that host names resolve to.

`{host}` and `{port}` are placeholders for an address that may not be called.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

TARGETS = ("127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.100.100.200", "0.0.0.0")
"""Forbidden targets: loopback, private networks, and cloud metadata services."""


def numeric_forms(address: str) -> Iterator[str]:
    """Yield spellings of an IPv4 address that C libraries accept: decimal, octal, hexadecimal, short, mixed, padded."""
    a, b, c, d = ipaddress.IPv4Address(address).packed
    number = int(ipaddress.IPv4Address(address))
    yield from (str(number), hex(number), f"0X{number:X}", f"0{number:o}", f"0x{number:010x}", f"{number}.")
    yield from (f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{number & 0xFFFF}", f"{a:#x}.{number & 0xFFFFFF}")
    yield from (f"{a:#x}.{b:#x}.{c:#x}.{d:#x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}", f"{a:#x}.0{b:o}.{c}.{d}")
    yield from (f"0{a:o}.{b}.{c}.{d:#x}", f"{a:04o}.{b:04o}.{c:04o}.{d:04o}", f"{a:#06x}.{b}.{c}.{d}", f"{address}.")
    yield from (f"{a:03}.{b:03}.{c:03}.{d:03}", f"{address}..", f".{address}", f"{a}..{b}.{c}.{d}", f"{address}.0")


def ipv6_forms(address: str) -> Iterator[str]:
    """Yield IPv6 addresses that reach an IPv4 address: mapped, compatible, translated, NAT64 and tunnelled ones."""
    number = int(ipaddress.IPv4Address(address))
    low, inverted = f"{number >> 16:x}:{number & 0xFFFF:x}", f"{~number >> 16 & 0xFFFF:x}:{~number & 0xFFFF:x}"
    yield from (f"::ffff:{address}", f"::ffff:{low}", f"::FFFF:{low}", f"0:0:0:0:0:ffff:{low}")
    yield from (f"0000:0000:0000:0000:0000:ffff:{address}", f"::{address}", f"::{low}", f"0:0:0:0:0:0:{low}")
    yield from (f"::ffff:0:{address}", f"::ffff:0:{low}", f"64:ff9b::{address}", f"64:ff9b::{low}")
    yield from (f"64:ff9b:1::{low}", f"64:ff9b:1:7f00::{address}", f"64:ff9b:1:ffff:ffff:ffff:{low}")
    yield from (f"2002:{low}::", f"2002:{low}::1", f"2002:{low}:ffff:ffff:ffff:ffff:ffff")
    yield from (f"2001:0:{low}::1", f"2001:0:808:808:0:ffff:{inverted}", f"2606:4700::5efe:{address}")
    yield from (f"2606:4700::200:5efe:{low}", f"fe80::5efe:{low}")


PLAIN_IPV6 = (
    *("::1", "0:0:0:0:0:0:0:1", "::", "::0001", "fe80::1", "febf::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1"),
    *("ff0e::1", "2001:db8::1", "3fff::1", "100::1", "100:0:0:1::1", "5f00::1", "2001:10::1"),
)
"""Loopback, link-local, private, multicast and documentation addresses, and a cloud metadata service's address."""


def look_alikes(address: str) -> Iterator[str]:
    """Yield spellings of the address in characters that Unicode normalization turns into digits and dots."""
    for zero in (0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x0660, 0x06F0, 0x0966, 0x1FBF0):
        yield "".join(chr(zero + int(char)) if char.isdigit() else char for char in address)
    yield "".join("⓪①②③④⑤⑥⑦⑧⑨"[int(char)] if char.isdigit() else char for char in address)
    yield "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(char)] if char.isdigit() else char for char in address)
    yield "".join("₀₁₂₃₄₅₆₇₈₉"[int(char)] if char.isdigit() else char for char in address)
    yield from (address.replace(".", dot) for dot in "。．｡․﹒")
    yield from (address.replace(".", f".{mark}") for mark in "\u00ad\u200b\u2060\ufeff")


NAMES = (
    *("localhost", "LocalHost", "localhost.", "app.localhost", "ip6-localhost", "metadata", "metadata.google.internal"),
    *("metadata.google.internal.", "instance-data", "host.docker.internal", "kubernetes", "printer.local", "nas.lan"),
    *("router.home.arpa", "wiki.intranet", "ollama"),
)
"""Names that can only belong to the local network. They are refused without a lookup."""

RESOLVING = (
    *("localhost.localdomain", "localtest.me", "127.0.0.1.nip.io", "7f000001.nip.io", "169-254-169-254.sslip.io"),
    *("xn--1-5w4a.example", "xn--n3h.example", "xn--27-ytd.0.0.1.example", "metadata.tencentyun.com", "a.example"),
)
"""Host names that look public. Only resolving them reveals the forbidden addresses."""

URLS = (
    *("https://api.openai.com@{host}/v1", "https://api.openai.com:443@{host}/v1", "https://:@{host}/v1"),
    *("https://{host}@api.openai.com/v1", "https://api.openai.com%40{host}/v1", "https://a@b@{host}/v1"),
    *("https://api.openai.com\\@{host}/v1", "https://{host}\\@api.openai.com/v1", "https://{host}\\.api.openai.com/v1"),
    *("https:\\\\{host}/v1", "https:/\\{host}/v1", "https:{host}/v1", "https:/{host}/v1", "https:///{host}/v1"),
    *("//{host}/v1", "{host}/v1", "https://{host}#@api.openai.com/v1", "https://api.openai.com#@{host}/v1"),
    *("https://{host}%23.api.openai.com/v1", "https://{host}%2f.api.openai.com/v1", "https://{host}%00.a.example/"),
    *("https://{host}%20.a.example/", "https://{host}\t/v1", "https://{host}\n/v1", "https://\t{host}/v1"),
    *("ht\ntps://{host}/v1", "https://{host}\r\nHost: api.openai.com/v1", " https://{host}/v1", "https://{host} /v1"),
    *("https://{host}\0.a.example/", "https://[{host}]/v1", "https://[{host}%25lo]/v1", "https://{host}:443:80/v1"),
    *(
        "https://[v1.{host}]/v1",
        "https://[vf.example]/v1",
        "https://{host}:/v1",
        "https://{host}:0443/v1",
        "https://{host}:+443/v1",
        "https://{host}:4_43/v1",
    ),
    *("https://{host}:65979/v1", "https://{host},api.openai.com/v1", "https://{host};api.openai.com/v1"),
    *("HTTPS://{host}/v1", "hTTp://{host}/v1", "http://{host}/v1", "http://{host}:80/v1", "ftp://{host}/v1"),
    *("file://{host}/etc/passwd", "gopher://{host}:6379/_INFO", "dict://{host}:11211/stats", "ws://{host}/v1"),
    *("unix:///var/run/docker.sock", "https://{host}?@api.openai.com/", "https://{host}/@api.openai.com/"),
    *("https://{host}?.api.openai.com", "url:https://{host}/v1", "jar:https://{host}/v1!/", "https://%31%32%37.0.0.1/"),
    *("https://echo:local@{host}/", "echo://{host}", "echo://local@{host}/", "ECHO://local/../{host}"),
)
"""Whole URLs whose host is a forbidden address or name."""

RESOLVED = tuple(dict.fromkeys([*TARGETS, *(form for target in TARGETS for form in ipv6_forms(target)), *PLAIN_IPV6]))
"""Addresses that a name server may return for a forbidden target."""

ZONES = tuple(f"{address}%{zone}" for address in ("fe80::1", "::1", "::ffff:10.0.0.1") for zone in ("lo", "eth0", "1"))
"""IPv6 addresses with a zone identifier."""


def disguised_hosts() -> list[str]:
    """Return every host that leads to a forbidden address, written as in a URL."""
    ipv6_hosts = [*(form for target in TARGETS for form in ipv6_forms(target)), *PLAIN_IPV6, *ZONES]
    ipv6_hosts += [zone.replace("%", "%25") for zone in ZONES]
    four = [form for target in TARGETS for form in (target, *numeric_forms(target))]
    look_alike_hosts = [form for target in TARGETS[:5] for form in look_alikes(target)]
    return list(dict.fromkeys([*four, *(f"[{ipv6_host}]" for ipv6_host in ipv6_hosts), *look_alike_hosts, *NAMES]))


def disguised_urls(host: str = "127.0.0.1") -> list[str]:
    """Return every URL that leads to a forbidden address or can be parsed in more than one way."""
    host_urls = [f"https://{disguised}/v1" for disguised in disguised_hosts()]
    return [*host_urls, *(url.replace("{host}", host) for url in URLS)]
