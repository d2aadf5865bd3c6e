"""Requests refused before any upstream call: keys in the URL, wrong methods, damaged files.

The server also starts if the development packages are missing.
"""

from __future__ import annotations

import subprocess
import sys
from urllib.parse import quote

import pytest
from django.test import Client

from artifacts.library import store_bytes
from artifacts.storage.content import byte_store
from capabilities.actors import SYSTEM
from routing_admin.models import RequestLog
from tests.gateway.plane import PNG, chat_body, post
from tests.gateway.serving import ROOT
from tests.stored_bytes import overwrite

rows = pytest.mark.django_db(databases=["default", "logs"])


@rows
@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/models", "get"),
        ("/v1/files", "get"),
        ("/v1/chat/completions", "post"),
        ("/api/v1/services", "get"),
        ("/api/v1/llm/send", "post"),
    ],
)
@pytest.mark.parametrize("encode", [str, lambda key: quote(key.replace("_", "%5F"), safe="%")])
def test_key_in_the_url_is_refused_and_never_logged(key, caplog, path, method, encode):
    headers = {"authorization": f"Bearer {key}"}
    address = f"{path}?api_key={encode(key)}"
    send = getattr(Client(), method)
    response = (
        send(address, "{}", content_type="application/json", headers=headers)
        if method == "post"
        else send(address, headers=headers)
    )
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["code"] if isinstance(error, dict) else error) == "key_in_url"
    assert "Authorization" in response.content.decode()
    secret = key.split("_", 2)[2]
    assert secret not in response.content.decode() + caplog.text
    assert not RequestLog.objects.exists()


@rows
@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/auto", "/v1/files"])
def test_head_response_has_the_status_and_length_of_get(key, path):
    headers = {"authorization": f"Bearer {key}"}
    whole, head = Client().get(path, headers=headers), Client().head(path, headers=headers)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Length"] == whole.headers["Content-Length"]


@rows
def test_wrong_method_is_405_with_an_allow_header(key):
    for method in ("get", "put", "head"):
        response = getattr(Client(), method)("/v1/chat/completions", headers={"authorization": f"Bearer {key}"})
        assert (response.status_code, response.headers["Allow"]) == (405, "POST")


@rows
@pytest.mark.both_stores
@pytest.mark.parametrize("damage", ["remove", "change"])
def test_damaged_stored_file_is_described_and_never_sent(key, damage):
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    if damage == "remove":
        byte_store().delete(row.sha256)
    else:
        overwrite(byte_store(), row.sha256, b"x" * len(PNG))
    part = {"type": "file", "file": {"file_id": row.ref}}
    response = post(key, chat_body(part, model="echo-vision"))
    assert response.status_code == 200
    answer = response.json()["choices"][0]["message"]["content"]
    assert row.id in answer
    assert response.headers["x-routing-adaptation"] != "image=native"


HIDDEN = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("django_stubs_ext", "mypy", "pytest", "hypothesis", "playwright"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
import routing_admin.asgi
"""


def test_application_starts_without_development_packages(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "ROUTING_ADMIN_DATA_DIR": str(tmp_path)}
    completed = subprocess.run(
        [sys.executable, "-W", "error", "-c", HIDDEN], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert completed.returncode == 0, completed.stderr
