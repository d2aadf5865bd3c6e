"""Send real calls through a running server's `/v1`. Meanwhile, the gateway providers point to the fault lab."""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from capabilities.actors import AuditedAction
from capabilities.core.permissions import SCOPES
from capabilities.models import Agent, Provider
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import issue_key, revoke_key
from routing_admin.configuration.history import newest_number
from routing_admin.configuration.revisions import ledger
from routing_admin.console.history.actions import undo
from routing_admin.console.providers.actions import save_provider
from tests.gateway.serving import Server, listening
from tests.lab import Lab
from tests.ui.large.artifacts import SAMPLES, picture
from tests.ui.large.people import person
from tests.ui.large.providers import GATEWAYS, ProviderTemplate

AGENT = "platform-live"
FINE = ("ok",) * 6
SCRIPT = {
    GATEWAYS[0].name: [*FINE, "reasoning", "capable", *FINE, "http_503", *FINE, "length", *FINE, "empty_content"],
    GATEWAYS[1].name: ["ok", "http_500", *FINE, "no_finish", "reasoning", "tool_call", *FINE, "reset_mid_body"],
    GATEWAYS[2].name: ["ok", "http_529", *FINE, "reasoning", "http_401", *FINE, "filtered"],
    GATEWAYS[3].name: ["ok", "http_429", *FINE, "tool_call", "close_before_headers", *FINE],
}
"""For each gateway provider, the scenarios of its first calls, in order. Later calls get a normal answer."""
PHOTO = base64.b64encode(picture(640, 400, 1)).decode()
PAPER = base64.b64encode((SAMPLES / "ghostscript.pdf").read_bytes()).decode()
SOUND = base64.b64encode((SAMPLES / "sine.wav").read_bytes()).decode()
TABLE = base64.b64encode(b"id,amount\n1,12.50\n2,8.75\n").decode()

Call = tuple[str, Mapping[str, Any]]
"""A request's path and body."""


def chat(number: int, model: str, stream: bool) -> Call:
    text = {"type": "text", "text": f"What does this say? ({number})"}
    files: Sequence[Mapping[str, Any]] = (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PHOTO}"}},
        {"type": "file", "file": {"filename": "paper.pdf", "file_data": f"data:application/pdf;base64,{PAPER}"}},
        {"type": "input_audio", "input_audio": {"data": SOUND, "format": "wav"}},
        {"type": "file", "file": {"filename": "rows.csv", "file_data": f"data:text/csv;base64,{TABLE}"}},
    )
    parts = [text, files[number % 4]] if number % 5 < 3 else [text]
    asked = [{"role": "user", "content": parts}]
    body = {"model": model, "messages": asked, "stream": stream, "user": f"u-{number % 7}"}
    return "/v1/chat/completions", body


def responses(number: int, model: str, stream: bool) -> Call:
    content: list[Mapping[str, Any]] = [{"type": "input_text", "text": f"Summarize, please. ({number})"}]
    if number % 2:
        content.append({"type": "input_image", "image_url": f"data:image/png;base64,{PHOTO}"})
    return "/v1/responses", {"model": model, "input": [{"role": "user", "content": content}], "stream": stream}


def messages(number: int, model: str, stream: bool) -> Call:
    source = {"type": "base64", "media_type": "application/pdf", "data": PAPER}
    content: list[Mapping[str, Any]] = [{"type": "text", "text": f"Review this. ({number})"}]
    if number % 2:
        content.append({"type": "document", "source": source})
    body = {"model": model, "max_tokens": 400, "messages": [{"role": "user", "content": content}], "stream": stream}
    return "/v1/messages", body


def gemini(number: int, model: str, stream: bool) -> Call:
    parts: list[Mapping[str, Any]] = [{"text": f"Describe it. ({number})"}]
    if number % 2:
        parts.append({"inlineData": {"mimeType": "image/png", "data": PHOTO}})
    action = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"/v1beta/models/{model}:{action}", {"contents": [{"role": "user", "parts": parts}]}


def embeddings(number: int, model: str, stream: bool) -> Call:
    return "/v1/embeddings", {"model": f"{GATEWAYS[0].name}/bge-m3", "input": [f"passage {number}", "another"]}


APIS: Sequence[Callable[[int, str, bool], Call]] = (chat, responses, chat, messages, gemini, embeddings, chat)


def send_calls(folder: Path, seed: int, count: int) -> int:
    """Start a server on this data directory and send calls through it. Return how many were answered."""
    rng = Random(f"calls {seed}")
    with Lab(SCRIPT) as lab, _gateways_at(lab):
        key, row = issue_key(person("mei.lin"), Agent.objects.get(agent_id=AGENT), scopes=SCOPES, label="live calls")
        environment = dict(os.environ)
        origins = (environment.get("ROUTING_ADMIN_ALLOWED_ORIGINS", ""), lab.url().split("/lab")[0])
        environment["ROUTING_ADMIN_ALLOWED_ORIGINS"] = ",".join(filter(None, origins))
        server = listening(environment, key, lab, folder)
        try:
            models = [f"task:platform.live-{template.name}" for template in GATEWAYS]
            calls = [
                APIS[number % len(APIS)](number, models[number // 2 % len(models)], rng.random() < 0.5)
                for number in range(count)
            ]
            with ThreadPoolExecutor(3) as pool:
                answered = sum(pool.map(lambda call: _send(server, key, *call), calls))
        finally:
            server.process.terminate()
            server.process.wait(timeout=40)
        snapshot.look()
        revoke_key(person("mei.lin"), row)
    return answered


@contextmanager
def _gateways_at(lab: Lab) -> Iterator[None]:
    """Point the gateway providers to the fault lab, and restore their URLs at the end."""
    with ledger.change(person("mei.lin"), AuditedAction("provider.change", message="Gateways at the test stand")):
        for template in GATEWAYS:
            row = Provider.objects.get(name=template.name)
            row.endpoint = _endpoint_at(lab, template)
            save_provider(person("mei.lin"), row)
    try:
        yield
    finally:
        undo(person("mei.lin"), newest_number() or 0)


def _endpoint_at(lab: Lab, template: ProviderTemplate) -> str:
    base = lab.url(template.protocol, template.name)
    return f"{base}/responses" if template.protocol == "openai-responses" else base


def _send(server: Server, key: str, path: str, body: Mapping[str, Any]) -> bool:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(server.url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()
            return True
    except (urllib.error.HTTPError, OSError):
        return False
