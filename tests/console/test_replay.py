"""Simulating a logged request with its recorded messages and files."""

from __future__ import annotations

import pytest
from django.test import Client

from artifacts.library import delete_artifacts, store_bytes
from capabilities.actors import SYSTEM
from routing_admin.console.settings import actions as installation
from tests.console.page import Page
from tests.console.visits import response_text
from tests.gateway.plane import PNG, chat_body, logged, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def simulation_page(request_id: str, browser: Client) -> Page:
    return Page(browser.get("/simulate/", {"request": request_id}))


def test_recorded_request_is_simulated_with_message_and_files(key: str, admin, viewer):
    installation.record_bodies(SYSTEM, True)
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    part = {"type": "file", "file": {"file_id": row.ref}}
    response = post(key, chat_body({"type": "text", "text": "Which colour is noon?"}, part, model="task:design"))
    request = logged(response.headers["x-request-id"])
    assert request.body is not None
    page = simulation_page(request.pk, admin)
    assert page.field("Message").value == "Which colour is noon?"
    assert row.pk in [control.value for control in page.controls if control.is_checked]
    assert "Which colour is noon?" not in response_text(viewer.get("/simulate/", {"request": request.pk}))


def test_recorded_request_is_simulated_without_a_deleted_file(key: str, admin):
    installation.record_bodies(SYSTEM, True)
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    response = post(key, chat_body({"type": "file", "file": {"file_id": row.ref}}, model="task:design"))
    request = logged(response.headers["x-request-id"])
    assert not simulation_page(request.pk, admin).shows("文件处理失败")
    delete_artifacts(SYSTEM, [row.pk])
    assert simulation_page(request.pk, admin).shows("文件处理失败: dot.png")


def test_unrecorded_request_is_simulated_with_files_only(key: str, admin, viewer):
    """The request log names the artifacts even if messages are not recorded.

    A viewer gets placeholders of the same kind and size.
    """
    row = store_bytes(SYSTEM, PNG, owner="text-agent", filename="dot.png", declared="image/png")
    part = {"type": "file", "file": {"file_id": row.ref}}
    response = post(key, chat_body({"type": "text", "text": "Which colour is noon?"}, part, model="task:design"))
    request = logged(response.headers["x-request-id"])
    assert request.body is None
    panel = admin.get("/simulate/", {"request": request.pk}).context["panel"]
    assert (panel.artifact_ids, panel.placeholders) == ([row.pk], {})
    for client, secret in ((admin, "Which colour is noon?"), (viewer, row.pk)):
        assert secret not in response_text(client.get("/simulate/", {"request": request.pk}))
    panel = viewer.get("/simulate/", {"request": request.pk}).context["panel"]
    assert (panel.artifact_ids, panel.placeholders) == ([], {"image": "0.1"})
    assert panel.run_view.stops[1].details == ["an image as it is"]
