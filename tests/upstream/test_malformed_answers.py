"""If a provider's response violates HTTP, the next candidate answers, and the log names the fault without a
traceback.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import pytest
from django.urls import reverse

from capabilities.models import Provider
from routing_admin.configuration import snapshot
from routing_admin.dispatch.provider_checks import provider_checker
from routing_admin.upstream import process_upstream, run_sync
from tests.console.visits import response_text
from tests.gateway.serving import Server, routing, served
from tests.lab import MALFORMED, SCENARIOS, Lab
from tests.processes import NO_CERTIFICATES

HELLO = [{"role": "user", "content": "hello"}]
ADDRESS = "Check the base URL: host, port, and whether it should begin with https://."


FORMS = ("plain", "stream")
CASES = [(name, form) for name in MALFORMED for form in FORMS]
# Each case has its own provider, so that a cooldown affects only this case.
SCRIPT = {f"{name}-{form}": name for name, form in CASES} | {"two": "say:from two"}


def configured(lab: Lab) -> dict[str, Any]:
    """Return a configuration with a task for each case, and a task with only malformed candidates.

    In each case, a candidate that answers follows the malformed one.
    """
    file = routing(lab)
    file["providers"] += [
        {"providerName": name, "apiKey": "NOT_NEEDED", "endpoint": lab.url("openai", name), "defaultModel": "lab"}
        for name in SCRIPT
        if name != "two"
    ]
    chains = {name: {"provider": name, "fallback": ["two"], "retries": 0} for name in SCRIPT if name != "two"}
    malformed = {"provider": "one", "fallback": ["three"], "retries": 0}
    file["routing"] |= chains | {"malformed": malformed}
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    script = {**SCRIPT, "one": "length_twice", "three": "head_garbage"}
    with served(tmp_path_factory.mktemp("malformed"), script, configured) as server:
        yield server


@pytest.fixture
def client(server: Server) -> openai.OpenAI:
    local = openai.DefaultHttpxClient(verify=NO_CERTIFICATES)
    return openai.OpenAI(api_key=server.key, base_url=server.url + "/v1", max_retries=0, http_client=local)


@pytest.mark.requirement("MMR-P8")
@pytest.mark.parametrize(("name", "form"), CASES)
def test_next_candidate_answers_after_a_malformed_response(client, server, name, form):
    ask = client.chat.completions.with_raw_response.create
    raw = ask(model=f"task:{name}-{form}", messages=HELLO, stream=form == "stream")
    answer = raw.parse()
    if form == "stream":
        text = "".join(piece.choices[0].delta.content or "" for piece in answer if piece.choices)
    else:
        text = answer.choices[0].message.content
    assert (text, raw.headers["x-routing-provider"]) == ("from two", "two")
    first, second = server.timeline(raw.headers["x-request-id"])["attempts"]
    assert (first["provider"], first["outcome"]) == (f"{name}-{form}", SCENARIOS[name].plain)
    assert first["error"].startswith("The provider's answer ")
    assert (second["provider"], second["outcome"]) == ("two", "ok")
    assert server.lab.played_for(f"{name}-{form}") == [name], "it was really played, once"
    assert "Traceback" not in server.log


def test_agent_gets_502_if_every_response_is_malformed(client, server):
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="task:malformed", messages=HELLO)
    assert (caught.value.status_code, caught.value.code) == (502, "all_providers_failed")
    assert [attempt["outcome"] for attempt in caught.value.body["attempts"]] == ["bad_http"] * 2
    assert "OpenSSH" not in caught.value.response.text
    assert "Traceback" not in server.log


@pytest.mark.django_db(databases=["default", "logs"])
@pytest.mark.parametrize("name", ["head_garbage", "head_status_99", "length_twice", "chunk_size_word"])
def test_connection_test_explains_a_malformed_response(caplog, name, demo: None, admin):
    with Lab({"up": name}) as lab:
        row = provider(lab.url("openai", "up"))
        answer = admin.post(reverse("provider_test", args=[row.name]))
        run_sync(process_upstream().close())
    text = response_text(answer)
    assert answer.status_code == 200
    assert "up gave no usable answer" in text
    assert "bad_http" in text
    assert f"The provider&#x27;s answer is not valid HTTP. {ADDRESS}" in text
    assert logs_no_internal_error(caplog), caplog.text


@pytest.mark.django_db(databases=["default", "logs"])
def test_malformed_model_list_is_a_fault(caplog, demo: None):
    with serve_banner(b"220 mail.example ESMTP\r\n\r\n") as url:
        provider(url)
        result = provider_checker().models("up")
        run_sync(process_upstream().close())
    assert (result.fault, result.models) == ("bad_http", ())
    assert result.message == "The provider's answer is not valid HTTP."
    assert logs_no_internal_error(caplog), caplog.text


def logs_no_internal_error(caplog: pytest.LogCaptureFixture) -> bool:
    return not any(record.exc_info or record.levelno >= logging.ERROR for record in caplog.records)


def provider(endpoint: str) -> Provider:
    row: Any = Provider.objects.create(
        name="up", endpoint=endpoint, default_model="lab", protocol="openai", key_source="none"
    )
    snapshot.refresh()
    return row


@contextmanager
def serve_banner(data: bytes) -> Iterator[str]:
    """Accept one connection and send bytes that are not HTTP."""

    def serve() -> None:
        caller, _ = listening.accept()
        with caller:
            caller.recv(65536)
            caller.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        serving.join(10)
