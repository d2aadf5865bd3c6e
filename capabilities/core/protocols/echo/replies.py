"""Encode the embedded provider's answers as response bytes, as a vendor would send them, and decode them."""

from __future__ import annotations

import json
from dataclasses import asdict

from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault, Usage


def encode_reply(outcome: Answer | Failure) -> tuple[int, bytes]:
    if isinstance(outcome, Failure):
        return outcome.status or 500, json.dumps({"error": outcome.message, "code": outcome.code}).encode()
    body = {"text": outcome.text, "model": outcome.model, "usage": asdict(outcome.usage)}
    return 200, json.dumps(body, ensure_ascii=False).encode()


def decode(status: int, body: bytes) -> Answer | Failure:
    try:
        value = json.loads(body)
    except ValueError:
        return Failure(Fault.BAD_JSON, translatable("the body is not JSON"), status)
    if not isinstance(value, dict):
        return Failure(Fault.BAD_SHAPE, translatable("expected a JSON object"), status)
    if status != 200:
        code = f"http_{status}"
        fault = Fault(code) if code in set(Fault) else Fault.HTTP_OTHER
        return Failure(fault, str(value.get("error", "")), status, value.get("code"))
    return Answer(value["text"], usage=Usage(**value["usage"]), model=value["model"])
