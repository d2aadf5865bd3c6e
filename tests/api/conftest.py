"""An installation with the demo's services, three agents, and callers that hold their keys."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from capabilities.actions import issue_key, save_agent
from capabilities.acts import SYSTEM
from capabilities.core.permissions import SCOPES
from capabilities.models import Agent, Service
from routing_admin.actions import import_configuration
from routing_admin.configuration import snapshot

DEMO = Path(__file__).resolve().parents[2] / "routing_admin" / "demo"
AGENTS = {"text-agent": "text-model", "vision-agent": "vision-model", "multimodal-agent": "multimodal-model"}


@dataclass
class Caller:
    """An agent's program: calls `/api/v1` with its key."""

    agent: str
    key: str

    def __post_init__(self) -> None:
        self.client = Client(raise_request_exception=False)
        self.headers = {"authorization": f"Bearer {self.key}"}

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        headers = {**self.headers, **more.pop("headers", {})}
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return self.client.generic(
            method, f"/api/v1{path}", data, "application/json", headers=headers, query_params=more or None
        )

    def get(self, path: str, **more: Any) -> Any:
        return self.call("GET", path, **more)

    def post(self, path: str, body: Any, **more: Any) -> Any:
        return self.call("POST", path, body, **more)

    def upload(self, name: str, data: bytes, kind: str = "application/octet-stream", **fields: Any) -> Any:
        file = SimpleUploadedFile(name, data, content_type=kind)
        return self.client.post("/api/v1/artifacts", {**fields, "file": file}, headers=self.headers)

    def stored(self, name: str, data: bytes, kind: str = "application/octet-stream", **fields: Any) -> dict[str, Any]:
        response = self.upload(name, data, kind, **fields)
        assert response.status_code == 201, response.content
        return dict(response.json())

    def artifact(self, ref: str, **more: Any) -> dict[str, Any]:
        response = self.get(f"/artifacts/{ref}", **more)
        assert response.status_code == 200, response.content
        return dict(response.json())


@pytest.fixture
def installation(db: None) -> None:
    """The demo's configuration and three agents, one per kind of model."""
    snapshot.forget()
    files = [(DEMO / name).read_bytes() for name in ("llm-routing.json", "llmservices.json")]
    import_configuration(SYSTEM, files)
    for agent_id, service in AGENTS.items():
        if not Agent.objects.filter(agent_id=agent_id).exists():
            save_agent(SYSTEM, Agent(agent_id=agent_id, service=Service.objects.get(service_id=service)))


@pytest.fixture
def caller(installation: None) -> Callable[..., Caller]:
    """Makes a caller for an agent, by default with every scope."""

    def make(agent_id: str, *scopes: str) -> Caller:
        key, _ = issue_key(SYSTEM, Agent.objects.get(agent_id=agent_id), scopes=scopes or SCOPES)
        return Caller(agent_id, key)

    return make


@pytest.fixture
def text_agent(caller: Callable[..., Caller]) -> Caller:
    return caller("text-agent")


@pytest.fixture
def vision_agent(caller: Callable[..., Caller]) -> Caller:
    return caller("vision-agent")
