"""A file in remote storage is read in a thread, so that the event loop continues with other calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from artifacts.core.errors import STORE_UNAVAILABLE, StoreUnavailableError
from capabilities.core.message import Blob, ChatRequest, Message, NativePart, Role
from capabilities.core.providers.origins import parse_policy
from capabilities.core.vocabulary import Kind
from capabilities.core.wire import Answer, Target, UpstreamRequest
from routing_admin.upstream import Upstream
from tests.fallback.network_runs import QUICK, protocol
from tests.lab import Lab

PATIENT = replace(QUICK, first_content=5)


def request_to(lab: Lab, blob: Blob) -> UpstreamRequest:
    target = Target("lab", lab.url("openai", "up"), "lab-model", "sk-secret-key-1234567890")
    chat = ChatRequest((Message(Role.USER, (NativePart(Kind.IMAGE, "image/png", blob),)),))
    return protocol("openai").encode(chat, target, stream=False)


@pytest.mark.parametrize("count", [2, 60], ids=["in one piece", "block by block"])
async def test_remote_file_is_read_in_a_thread(count: int) -> None:
    readers: set[int] = set()

    def blocks() -> Iterator[bytes]:
        for number in range(count):
            readers.add(threading.get_ident())
            yield bytes([number]) * 100_000

    with Lab() as lab:
        upstream = Upstream(parse_policy("*"))
        request = request_to(lab, Blob(count * 100_000, blocks, is_remote=True))
        assert isinstance(await upstream.call(request, protocol("openai"), PATIENT), Answer)
        await upstream.close()
        assert lab.requests[-1].heard.media[0].data == b"".join(bytes([number]) * 100_000 for number in range(count))
    assert readers
    assert threading.get_ident() not in readers


@pytest.mark.parametrize("size", [300, 6_000_000], ids=["in one piece", "block by block"])
async def test_storage_error_is_not_the_providers_fault(size: int) -> None:
    def blocks() -> Iterator[bytes]:
        yield b"abc"
        raise StoreUnavailableError("away")

    with Lab() as lab:
        upstream = Upstream(parse_policy("*"))
        request = request_to(lab, Blob(size, blocks, is_remote=True))
        with pytest.raises(StoreUnavailableError, match=STORE_UNAVAILABLE):
            await upstream.call(request, protocol("openai"), PATIENT)
        await upstream.close()
