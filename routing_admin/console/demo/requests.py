"""Record the demo's first request. It is really dispatched, so that its timeline is genuine."""

from __future__ import annotations

import secrets
import struct
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass

from artifacts.library import store_bytes
from artifacts.models import Artifact
from artifacts.storage.content import part_of
from capabilities.acts import Actor
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.configuration import snapshot
from routing_admin.core.fallback.chain import Timeouts
from routing_admin.core.fallback.context import local_context
from routing_admin.core.fallback.errors import RouterError
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.plan import resolve_route
from routing_admin.dispatch.plan import PlannedRequest, plan_request, record_plan
from routing_admin.dispatch.recorded import record_answer_sync
from routing_admin.dispatch.send import Dispatch, NetworkTransport
from routing_admin.request_log.journal import journal
from routing_admin.request_log.recorder import RequestRecorder

TASK_TYPE, AGENT, DOWN = "design", "text-agent", "echo-vision"
QUESTION = "Which colours does this picture have?"
SWITCHED_OFF = translatable("%(model)s was switched off for this example, so that the last candidate's form shows.")
SIDE = 16


@dataclass(frozen=True, slots=True)
class OneDown(NetworkTransport):
    """A transport that simulates the failure of one model."""

    model: str

    async def call(self, prepared: Prepared, to: ModelEndpoint, timeouts: Timeouts, proxy: str) -> Answer | Failure:
        if to.target.model == self.model:
            return Failure(Fault.HTTP_503, translatable(SWITCHED_OFF, model=self.model), 503, "unavailable")
        return await NetworkTransport.call(self, prepared, to, timeouts, proxy)


def record_demo_request() -> str | None:
    """Dispatch a request with a picture along the route `design` while one model is down. Return the request's id.

    Its timeline shows that the picture was sent unchanged to two candidates, and as a description to the third. Return
    None if there is no such route.
    """
    state = snapshot.current()
    route = state.configuration.route(TASK_TYPE)
    if route is None:
        return None
    file = part_of(Artifact.objects.living().filter(kind="image").first() or _picture())
    chat = ChatRequest((Message(Role.USER, (TextPart(QUESTION), file)),))
    planned = plan_request(state, resolve_route(state.configuration, TASK_TYPE)[0], chat, agent=AGENT)
    return _send(planned)


def _send(planned: PlannedRequest) -> str:
    request_id = "demo_" + secrets.token_hex(8)
    recorder = RequestRecorder(request_id, "demo")
    recorder.add_facts(agent=AGENT, asked_model=task_name(TASK_TYPE))
    record_plan(recorder, planned, TASK_TYPE)
    # A separate context skips the delays between tries and leaves the cooldowns of this process unchanged.
    dispatch = Dispatch(planned, OneDown(DOWN), local_context(time.monotonic, lambda: 0.0))
    with suppress(RouterError):  # if no candidate answered, the log records it
        record_answer_sync(dispatch, recorder)
    journal().flush()
    return request_id


def _picture() -> Artifact:
    # Builds a PNG of a blue square that becomes lighter to the right.
    rows = b"".join(b"\0" + b"".join(bytes((16 * x, 64 + 8 * y, 200)) for x in range(SIDE)) for y in range(SIDE))
    head = _chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + head + _chunk(b"IDAT", zlib.compress(rows)) + _chunk(b"IEND", b"")
    actor = Actor("system", "demo")
    return store_bytes(actor, data, owner=AGENT, filename="blue.png", declared="image/png")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
