"""Which origins (scheme, host, port) the gateway may call, however a URL spells them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.providers.origins import (
    OriginPolicy,
    check_addresses,
    is_public,
    parse_origin,
    parse_policy,
    refuse_proxy,
    refuse_url,
)

CLOSED = OriginPolicy()
PUBLIC = [
    "https://api.openai.com/v1",
    "https://api.deepseek.com:443/chat/completions",
    "https://8.8.8.8/v1",
    "https://[2606:4700:4700::1111]/v1",
    "echo://local",
]
PRIVATE = [
    "127.0.0.1",
    "10.0.0.1",
    "172.16.3.4",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "168.63.129.16",
    "192.0.0.192",
    "192.88.99.1",
    "224.0.0.1",
    "255.255.255.255",
]


@pytest.mark.parametrize("url", PUBLIC)
def test_public_https_origins_and_the_echo_provider_may_be_called(url):
    assert refuse_url(url, CLOSED) is None


@pytest.mark.parametrize(
    "url",
    [
        "http://api.openai.com/v1",
        "https://localhost/v1",
        "https://ollama:11434/v1",
        "https://box.local/v1",
        "https://api.openai.com:8443/v1",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0177.0.0.1/",
        "https://127.1/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:7f00:1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[64:ff9b:1::a00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[::7f00:1]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[ff02::1]/",
        "https://127.0.0.1./",
        "https://localhost./",
        "https://256.1.1.1/",
        "https://1.2.3.4.5/",
        "https://[2001:0:7f00:1::]/",
    ],
)
def test_private_or_plain_http_origin_is_rejected_with_the_name_of_the_setting(url):
    sentence = refuse_url(url, CLOSED)
    assert sentence is not None
    assert "ROUTING_ADMIN_ALLOWED_ORIGINS" in sentence


@pytest.mark.parametrize(
    "url",
    [
        "https://user:key@api.openai.com/",
        "https://api.openai.com/#x",
        "https://api.openai.com\\@evil/",
        "https:// a/",
        "https://a\n.com/",
        "https://ａｐｉ.openai.com/",
        "https://1２7.0.0.1/",
        "ftp://a.com/",
        "https:///v1",
        "",
        "api.openai.com",
        "https://%31%32%37.0.0.1/",
        "https://a.com:99999/",
        "https://[::1",
        "file:///etc/passwd",
        "https://127。0。0。1/",
        "echo://elsewhere",
    ],
)
def test_malformed_url_is_rejected_even_if_everything_is_allowed(url):
    """A malformed URL can be parsed in more than one way."""
    assert refuse_url(url, OriginPolicy(everything=True)) is not None


def mapped_addresses(address: ipaddress.IPv4Address) -> list[str]:
    number, octets = int(address), address.packed
    low = f"{number >> 16:x}:{number & 0xFFFF:x}"
    return [
        str(address),
        str(number),
        hex(number),
        ".".join(f"0{octet:o}" for octet in octets),
        ".".join(hex(octet) for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        f"[::ffff:{address}]",
        f"[::ffff:{low}]",
        f"[64:ff9b::{low}]",
        f"[64:ff9b:1::{low}]",
        f"[2002:{low}::1]",
        f"[::{low}]",
        f"[::ffff:0:{address}]",
        f"[2606:4700::5efe:{address}]",
        f"[2606:4700::200:5efe:{low}]",
    ]


private_networks = st.sampled_from(
    [
        "127.0.0.0/8",
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "0.0.0.0/8",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ]
).map(ipaddress.ip_network)


@given(
    private_networks.flatmap(lambda network: st.integers(0, network.num_addresses - 1).map(lambda n: network[n])),
    st.data(),
)
def test_every_ipv6_spelling_of_a_private_address_is_rejected(address, data):
    host = data.draw(st.sampled_from(mapped_addresses(address)))
    assert refuse_url(f"https://{host}/v1", CLOSED) is not None
    assert refuse_url(f"https://{host}:443/v1", CLOSED) is not None


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_address_that_the_standard_library_calls_private_is_never_public(address):
    if not address.is_global or address.is_multicast:
        assert not is_public(str(address)) or getattr(address, "ipv4_mapped", None) is not None


@pytest.mark.parametrize("address", PRIVATE)
def test_host_that_resolves_to_a_private_address_is_rejected(address):
    sentence = check_addresses("https://evil.example/v1", ["8.8.8.8", address], CLOSED)
    assert address in sentence
    assert "ROUTING_ADMIN_ALLOWED_ORIGINS" in sentence
    assert check_addresses("https://evil.example/v1", ["8.8.8.8"], CLOSED) is None


def test_allowed_origin_must_match_in_scheme_host_and_port():
    policy = parse_policy("http://localhost:11434/v1, https://10.0.0.5")
    assert refuse_url("http://localhost:11434/api/chat", policy) is None
    assert refuse_url("https://10.0.0.5/v1", policy) is None
    assert check_addresses("http://localhost:11434/x", ["127.0.0.1"], policy) is None
    for url in ("http://localhost:11435/", "https://localhost:11434/", "http://10.0.0.5/"):
        assert refuse_url(url, policy) is not None
    assert refuse_url("http://127.0.0.1:1/", parse_policy("*")) is None


@pytest.mark.parametrize("address", ["100:0:0:1::1", "3fff::1", "5f00::1"])
def test_recently_reserved_networks_are_not_public(address):
    """The standard library does not know the most recently reserved networks."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "proxy", ["http://proxy.example:3128", "http://169.254.169.254", "https://10.0.0.1", "socks5://a"]
)
def test_proxy_with_a_disallowed_origin_is_rejected(proxy):
    """A proxy sees every request and key."""
    assert "proxy" in refuse_proxy(proxy, CLOSED)


def test_proxy_for_an_endpoint_without_tls_must_be_an_allowed_origin():
    """Without TLS, the proxy could read the key."""
    proxy, endpoint = "https://proxy.example", "HTTP://10.0.0.5:8000/v1"
    assert "it would read the key" in refuse_proxy(proxy, CLOSED, endpoint=endpoint)
    assert refuse_proxy(proxy, CLOSED, endpoint="https://api.example/v1") is None
    assert refuse_proxy(proxy, parse_policy(f"{proxy},http://10.0.0.5:8000"), endpoint=endpoint) is None
    assert refuse_proxy(proxy, CLOSED, own_proxy=proxy, endpoint=endpoint) is None


def test_proxy_rejection_message_hides_user_and_password():
    policy = parse_policy("http://proxy.example:3128")
    assert refuse_proxy("http://user:secret@proxy.example:3128", policy) is None
    assert "secret" not in refuse_proxy("http://user:secret@other.example:3128", policy)
    assert refuse_proxy("https://user:secret@proxy.example", CLOSED) is None


def test_parsed_origin_is_normalized():
    assert parse_origin("HTTPS://API.Example.com/v1") == "https://api.example.com:443"
    assert parse_origin("http://[::1]:80/") == "http://[::1]:80"
    assert parse_origin("ftp://a") is None
