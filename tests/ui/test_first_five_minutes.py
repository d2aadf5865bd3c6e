"""The README's first five minutes, with a served installation, a real browser and an official SDK."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.processes import PROGRAM, free_port, wait_for_success

ROOT = Path(__file__).parents[2]
PASSWORD = "a stranger's password 1"

pytestmark = pytest.mark.ui


@dataclass(frozen=True)
class Product:
    """A served installation with the demo: its URL, and the agent key that `bootstrap` printed."""

    url: str
    key: str


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """Start the product as `make run` does after installation: bootstrap, then serve."""
    port = free_port()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("ROUTING_ADMIN_", "DJANGO_"))},
        "ROUTING_ADMIN_DATA_DIR": str(tmp_path_factory.mktemp("data")),
        "ROUTING_ADMIN_PORT": str(port),
        "ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD,
    }
    output = subprocess.run(
        [*PROGRAM, "bootstrap"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    key = re.search(r"ra_\S+", output)
    assert key is not None, output
    server = subprocess.Popen([*PROGRAM, "serve"], cwd=ROOT, env=environment, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        wait_for_success(f"{url}/readyz")
        yield Product(url, key[0])
    finally:
        server.terminate()
        server.wait(timeout=40)


@pytest.fixture
def visitor(browser: Any, product: Product) -> Iterator[Any]:
    """Open one of the server's pages. A console error fails the test."""
    context = browser.new_context(base_url=product.url, locale="en", accept_downloads=True, reduced_motion="reduce")
    context.set_default_timeout(10_000)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    yield page
    context.close()
    assert complaints == []


def sign_in(page: Any) -> None:
    page.goto("/")
    page.get_by_label("User name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_new_user_can_upload_preview_edit_a_chain_and_export(visitor: Any, tmp_path: Path) -> None:
    sign_in(visitor)
    file = tmp_path / "notes.gbk.txt"
    file.write_bytes("会议纪要：首选模型答复了绝大多数请求。".encode("gb18030"))
    visitor.goto("/artifacts/")
    visitor.locator("input[type=file]").set_input_files(file)
    visitor.get_by_role("link", name="notes.gbk.txt").first.click()
    expect(visitor.get_by_role("heading", name="As each model receives it")).to_be_visible()
    expect(visitor.get_by_text("会议纪要").first).to_be_visible()

    visitor.goto("/routes/design/")
    visitor.get_by_role("button", name=re.compile("Move .*echo-vision up")).click()
    expect(visitor.locator("#savebar")).not_to_contain_text("No changes yet")
    visitor.get_by_role("button", name="Save", exact=True).click()
    expect(visitor.locator("#chain [data-item] h3").first).to_have_text("echo-vision")
    visitor.get_by_role("button", name="Undo").first.click()
    visitor.goto("/routes/design/")
    expect(visitor.locator("#chain [data-item] h3").first).to_have_text("echo-503")

    visitor.goto("/config/")
    with visitor.expect_download() as download:
        visitor.get_by_role("link", name=re.compile("llm-routing")).first.click()
    exported = json.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    agents = [agent["id"] for agent in exported.pop("agents")]
    assert agents == ["multimodal-agent", "text-agent", "vision-agent"]
    assert exported == json.loads((ROOT / "routing_admin/console/demo/llm-routing.json").read_text(encoding="utf-8"))


def test_official_sdk_works_with_only_a_changed_base_url(product: Product, visitor: Any) -> None:
    from openai import OpenAI

    client = OpenAI(base_url=f"{product.url}/v1", api_key=product.key)
    planned = client.chat.completions.create(
        model="task:planning", messages=[{"role": "user", "content": "Plan my day"}]
    )
    assert "Plan my day" in (planned.choices[0].message.content or "")
    with (ROOT / "routing_admin/console/demo/files/layout.png").open("rb") as picture:
        file = client.files.create(file=picture, purpose="user_data")
    content = [{"type": "text", "text": "What is wrong?"}, {"type": "file", "file": {"file_id": file.id}}]
    raw = client.chat.completions.with_raw_response.create(
        model="task:design", messages=[{"role": "user", "content": content}]
    )
    assert (raw.headers["x-routing-model"], raw.headers["x-routing-adaptation"]) == ("echo-vision", "image=native")
    sign_in(visitor)
    visitor.goto(f"/requests/{raw.headers['x-request-id']}/")
    expect(visitor.get_by_text("layout.png").first).to_be_visible()
    expect(visitor.get_by_text("As it is").first).to_be_visible()


@pytest.mark.requirement("ABR-2.1", "MCR-4.4")
def test_api_tells_a_text_agent_which_agent_can_read_an_image(product: Product) -> None:

    def get(path: str) -> Any:
        call = urllib.request.Request(f"{product.url}{path}", headers={"Authorization": f"Bearer {product.key}"})
        with urllib.request.urlopen(call, timeout=10) as response:
            return json.load(response)

    from openai import OpenAI

    with (ROOT / "routing_admin/console/demo/files/layout.png").open("rb") as picture:
        ref = (
            OpenAI(base_url=f"{product.url}/v1", api_key=product.key).files.create(file=picture, purpose="user_data").id
        )
    described = get(f"/api/v1/artifacts/{ref}")
    assert (described["contentType"], described["routing"]) == ("image", "text")
    assert "vision-agent" in get("/api/v1/agents/me")["forwardTo"]["vision"]
    delivered = get(f"/api/v1/artifacts/{ref}?serviceId=vision-model")
    assert delivered["imageUrl"]["image_url"]["url"].startswith("data:image/png;base64,")
