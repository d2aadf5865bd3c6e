"""Upload links: one link stores one file for one agent, once, within 15 minutes.

The secret in the link authenticates the upload.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest
from django.test import Client
from django.utils import timezone

from artifacts.library import LinkExpiredError, offer_upload, upload_by_link
from artifacts.models import Artifact, UploadLink
from artifacts.storage.content import byte_store
from artifacts.storage.uploads import PATH, TokenState, check_token, check_upload_address, make_token
from capabilities.actors import SYSTEM
from capabilities.core.providers.redaction import redact
from capabilities.models import Agent, AgentKey
from routing_admin.api.artifacts.uploads import request_base_url
from routing_admin.configuration.agents.actions import revoke_key
from routing_admin.console.settings.pruning import prune
from routing_admin.models import AuditEvent
from tests.artifacts.samples import SAMPLES
from tests.cast import AgentProgram

pytestmark = [pytest.mark.both_stores, pytest.mark.django_db(databases=["default", "logs"])]
PHOTO = next(sample for sample in SAMPLES if sample.name == "photo.png")
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def create_link(agent: AgentProgram, **fields: Any) -> dict[str, Any]:
    answer = agent.post("/uploads", {"filename": "photo.png", **fields})
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def put(link: dict[str, Any] | str, data: bytes = PHOTO.data, kind: str = "", **headers: str) -> Any:
    url = link if isinstance(link, str) else link["uploadUrl"]
    return Client().put(url, data, content_type=kind, headers=headers)


def test_uploaded_file_becomes_the_agents_artifact_under_the_promised_reference(text_agent: AgentProgram) -> None:
    link = create_link(text_agent)
    stored = put(link)
    assert stored.status_code == 201
    artifact = stored.json()
    assert (artifact["ref"], artifact["owner"], artifact["filename"]) == (link["ref"], "text-agent", "photo.png")
    assert (artifact["mimeType"], artifact["size"]) == ("image/png", len(PHOTO.data))
    assert text_agent.get(f"/artifacts/{link['ref']}/info").json() == artifact
    event = AuditEvent.objects.filter(action="artifact.store").latest("pk")
    assert (event.actor_kind, event.actor) == ("agent", "text-agent")


def test_link_has_url_method_expiry_and_size_and_is_stored_as_a_digest(text_agent: AgentProgram) -> None:
    link = create_link(text_agent)
    assert link["uploadUrl"].startswith(f"http://testserver{PATH}")
    assert (link["method"], link["maxBytes"]) == ("PUT", 25 * 1024 * 1024)
    remaining = datetime.fromisoformat(link["expiresAt"]) - timezone.now()
    assert timedelta(minutes=14) < remaining <= timedelta(minutes=15)
    row = UploadLink.objects.get()
    token = link["uploadUrl"].removeprefix(f"http://testserver{PATH}")
    assert token not in " ".join(str(value) for value in row.__dict__.values())


def test_second_use_of_a_link_returns_410_and_stores_nothing(text_agent: AgentProgram) -> None:
    link = create_link(text_agent)
    put(link)
    repeated = put(link, b"other")
    assert (repeated.status_code, repeated.json()["error"], repeated.json()["ref"]) == (
        410,
        "upload_link_over",
        link["ref"],
    )
    assert Artifact.objects.filter(owner="text-agent").count() == 1


def test_expired_link_returns_410(text_agent: AgentProgram) -> None:
    expired = make_token(timezone.now() - timedelta(seconds=1))
    answer = put(PATH + expired)
    assert answer.status_code == 410
    assert "has expired" in answer.json()["message"]


@pytest.mark.parametrize("token", ["x", "a" * 72, "%2e%2e"])
def test_unknown_link_returns_404(text_agent: AgentProgram, token: str) -> None:
    """A link that has a valid signature but was never issued counts as unknown, too."""
    assert put(PATH + token).status_code == 404
    never = put(PATH + make_token(timezone.now() + timedelta(minutes=5)))
    assert (never.status_code, never.json()["error"]) == (404, "not_found")


def test_file_that_is_too_large_is_rejected_and_the_link_stays_valid(text_agent: AgentProgram, settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES = 100
    link = create_link(text_agent)
    stored_link = set(byte_store().digests())
    answer = put(link, b"x" * 101)
    assert (answer.status_code, answer.json()["error"], answer.json()["limit"]) == (413, "too_large", 100)
    assert set(byte_store().digests()) == stored_link
    assert put(link, b"x" * 100).status_code == 201


def test_file_declared_too_large_gets_no_link(text_agent: AgentProgram) -> None:
    answer = text_agent.post("/uploads", {"filename": "a.bin", "size": 26 * 1024 * 1024})
    assert answer.status_code == 413
    assert "26214400" in answer.json()["message"]
    assert not UploadLink.objects.exists()


def test_empty_file_is_stored(text_agent: AgentProgram) -> None:
    assert put(create_link(text_agent), b"").json()["size"] == 0


def test_type_of_the_link_outranks_the_type_of_the_request(text_agent: AgentProgram) -> None:
    """If the link has no type, the request's type is used, unless it is only curl's default type."""
    assert put(create_link(text_agent, mimeType="text/markdown"), b"# x", "text/plain").json()["declaredMimeType"] == (
        "text/markdown"
    )
    assert put(create_link(text_agent, filename="x"), b"a,b", "text/csv").json()["declaredMimeType"] == "text/csv"
    assert (
        put(create_link(text_agent), PHOTO.data, "application/x-www-form-urlencoded").json()["declaredMimeType"] is None
    )


@pytest.mark.parametrize(
    ("kind", "headers"), [("multipart/form-data; boundary=x", {}), ("image/png", {"content-encoding": "gzip"})]
)
def test_multipart_form_is_rejected(text_agent: AgentProgram, kind: str, headers: dict[str, str]) -> None:
    """Otherwise, the form's boundaries and headers would be stored with the file."""
    link = create_link(text_agent)
    assert put(link, PHOTO.data, kind, **headers).status_code == 415
    assert put(link).status_code == 201


def test_link_becomes_invalid_with_the_key_or_agent_that_created_the_link(text_agent: AgentProgram) -> None:
    by_key, by_agent = create_link(text_agent), create_link(text_agent)
    revoke_key(SYSTEM, AgentKey.objects.get(public_id=text_agent.key.split("_")[1]))
    assert put(by_key).status_code == 410
    Agent.objects.filter(agent_id="text-agent").delete()
    assert put(by_agent).status_code == 410
    assert not Artifact.objects.filter(owner="text-agent").exists()


def test_link_requested_on_behalf_of_another_agent_stores_for_that_agent(text_agent: AgentProgram) -> None:
    text_agent.call("PUT", "/agents/helper", {"taskType": "planning"})
    answer = text_agent.post("/uploads", {"filename": "a.txt"}, headers={"x-agent-id": "helper"})
    assert put(answer.json(), b"words").json()["owner"] == "helper"


def test_only_one_of_two_concurrent_uploads_by_a_link_is_stored(text_agent: AgentProgram) -> None:
    """A link is claimed before the first byte of the upload is read."""
    link = offer_upload("text-agent", text_agent.key.split("_")[1], "a.bin")

    def blocks() -> Any:
        with pytest.raises(LinkExpiredError):
            upload_by_link(link.token, (b"second",), "", None, "", "req_2")
        yield b"first"

    assert upload_by_link(link.token, blocks(), "", None, "", "req_1").size == 5


def test_expired_links_are_deleted_by_prune_and_when_a_new_link_is_created(text_agent: AgentProgram) -> None:
    create_link(text_agent)
    UploadLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    create_link(text_agent)
    assert UploadLink.objects.count() == 1
    prune(SYSTEM, timezone.now() + timedelta(hours=1))
    assert not UploadLink.objects.exists()


def test_link_token_is_verified_by_its_signature_without_the_database() -> None:
    token = make_token(NOW + timedelta(minutes=15))
    assert check_token(token, NOW) is TokenState.VALID
    assert check_token(token, NOW + timedelta(minutes=15)) is TokenState.EXPIRED
    next_link = f"{int((NOW + timedelta(days=1)).timestamp()):08x}{token[8:]}"
    assert check_token(next_link, NOW) is TokenState.WRONG
    assert check_upload_address(f"/api/v1/artifacts/{token}") is None


def test_redacted_logs_contain_no_secret_of_a_link() -> None:
    token = make_token(NOW)
    for line in (f"Gone: {PATH}{token}", f"https://h{PATH}{token}?x", f"//api//v1//uploads//{token} is not here"):
        assert token[8:20] not in redact(line)


@pytest.mark.parametrize(
    ("host", "scheme", "forwarded", "public", "proxies", "expected"),
    [
        ("127.0.0.1:8000", "http", "", "http://127.0.0.1:8000", None, "http://127.0.0.1:8000"),
        ("llm.example", "https", "", "http://127.0.0.1:8000", None, "https://llm.example"),
        ("llm.example", "http", "https", "http://x", ("HTTP_X_FORWARDED_PROTO", "https"), "https://llm.example"),
        ("llm.example", "http", "https", "http://x", None, "http://llm.example"),
        ("llm.example", "http", "", "https://llm.example", None, "https://llm.example"),
        ("localhost:8000", "http", "", "https://llm.example", None, "http://localhost:8000"),
    ],
)
def test_link_names_the_host_that_the_agent_used(
    settings: Any, host: str, scheme: str, forwarded: str, public: str, proxies: Any, expected: str
) -> None:
    """The link uses https if the server, a trusted proxy or the public URL uses it."""
    settings.PUBLIC_URL, settings.SECURE_PROXY_SSL_HEADER, settings.ALLOWED_HOSTS = public, proxies, ["*"]
    headers = {"host": host, **({"x-forwarded-proto": forwarded} if forwarded else {})}
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": pairs, "scheme": scheme}
    assert request_base_url(ASGIRequest(scope, BytesIO())) == expected
