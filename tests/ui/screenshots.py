"""`python -m tests.ui.screenshots [NAME …]` takes the README's screenshots of the demo (`make screenshots`).

It starts a server on a temporary data directory, as `make run` does, and stops it at the end.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.processes import free_port, wait_for_success, wait_until

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "docs" / "pictures"
PASSWORD = "a password for pictures only"
LARGEST = 150_000
"""The maximum size of a picture in bytes. A larger one gets fewer colours, until it fits."""

SECONDS_TO_START = 60
KEY = re.compile(r"ra_[0-9a-z]{8}_[A-Za-z0-9_-]{43}_[0-9a-f]{8}")
CALLS = (
    ("task:planning", "Plan the week of the release."),
    ("task:chapter_generation", "Write the first chapter."),
    ("task:design", "What is wrong with this layout?"),
    ("task:planning", "And the week after it."),
    ("echo/echo-503", "Are you there?"),
    ("task:optimization", "Make this shorter."),
    ("task:one_shot_generation", "A haiku on routing."),
    ("task:design", "Is the second draft better?"),
)
"""Models and messages of the additional requests that the pictures of the log show."""


@dataclass(frozen=True)
class Picture:
    """A picture: its file name, its page (`place` is a name in `addresses`), and how the page is shown."""

    name: str
    place: str
    height: int = 900
    scheme: str = "light"
    language: str = "en"
    width: int = 1280


ALL = (
    Picture("dashboard", "dashboard"),
    Picture("artifact", "artifact", 1250),
    Picture("artifact.dark", "artifact", 1250, "dark"),
    Picture("artifact.zh", "artifact", 1250, "dark", "zh-Hans"),
    Picture("route", "route", 1100),
    Picture("requests", "requests"),
    Picture("request", "request", 1000),
    Picture("matrix", "matrix"),
)


@contextmanager
def product() -> Iterator[str]:
    """Serve the demo, and yield the URL. This process's environment is set to the server's data directory."""
    with tempfile.TemporaryDirectory(prefix="routing-admin-pictures-") as folder:
        for name in [name for name in os.environ if name.startswith(("ROUTING_ADMIN_", "LLM_"))]:
            del os.environ[name]
        os.environ |= {
            "ROUTING_ADMIN_DATA_DIR": folder,
            "ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD,
            "ROUTING_ADMIN_PUBLIC_URL": "http://127.0.0.1:8000",  # The URL that pages show, whichever port is free.
            "DJANGO_SETTINGS_MODULE": "routing_admin.settings",
        }
        command = [sys.executable, str(ROOT / "manage.py")]
        output = subprocess.run([*command, "bootstrap"], check=True, capture_output=True, text=True).stdout
        port = free_port()
        server = subprocess.Popen([*command, "serve", "--port", str(port)], stderr=subprocess.DEVNULL)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_for_success(f"{url}/healthz", SECONDS_TO_START)
            call(url, KEY.findall(output)[0])
            yield url
        finally:
            server.terminate()
            server.wait(timeout=40)


def call(url: str, key: str) -> None:
    """Send an agent's requests, so that the log is not empty. Return once the last one is logged."""
    last = ""
    for model, text in CALLS:
        body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()
        last = send_call(f"{url}/v1/chat/completions", key, body)
    wait_until(lambda: is_logged(f"{url}/api/v1/requests/{last}", key), SECONDS_TO_START)


def send_call(address: str, key: str, body: bytes) -> str:
    """Send the call and return its request id, whatever the response is."""
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        answer: Any = urllib.request.urlopen(urllib.request.Request(address, body, headers))
    except urllib.error.HTTPError as refused:
        answer = refused
    with answer:
        return str(answer.headers["x-request-id"])


def is_logged(address: str, key: str) -> bool:
    try:
        urllib.request.urlopen(urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"})).close()
    except urllib.error.HTTPError:
        return False
    return True


def addresses() -> dict[str, str]:
    """Return the URL of each page by name. The objects in the URLs are the demo's."""
    import django

    django.setup()
    from django.urls import reverse

    from artifacts.models import Artifact
    from routing_admin.models import RequestLog

    urls = {name: reverse(name) for name in ("dashboard", "requests", "matrix", "routes", "providers", "artifacts")}
    urls |= {name: reverse(name) for name in ("agents", "config", "history", "settings", "users")}
    urls["route"] = reverse("route", args=["design"])
    picture = Artifact.objects.living().filter(kind="image").first()
    if picture:
        urls["artifact"] = reverse("artifact", args=[picture.pk])
    request = RequestLog.objects.exclude(adaptation="").first() or RequestLog.objects.first()
    if request:
        urls["request"] = reverse("request", args=[request.pk])
    return urls


def signed_in(browser: Any, url: str) -> Any:
    context = browser.new_context(base_url=url)
    page = context.new_page()
    page.goto("/login/?next=/settings/")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_selector("#main h1")
    state = context.storage_state()
    context.close()
    return state


def browse(browser: Any, url: str, picture: Picture, state: Any) -> Any:
    """Open a page in a new window with the picture's size and theme, using the given session."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
        reduced_motion="reduce",
        storage_state=state,
    )
    language = "zh-hans" if picture.language.startswith("zh") else picture.language
    context.add_cookies([{"name": "django_language", "value": language, "url": url}])
    return context.new_page()


def reduce_colours(data: bytes) -> bytes:
    """Reduce the colours of the picture until it has at most `LARGEST` bytes."""
    from PIL import Image

    image = Image.open(io.BytesIO(data)).convert("RGB")
    for colours in (256, 128, 64, 32):
        buffer = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
        if buffer.tell() < LARGEST:
            break
    return buffer.getvalue()


def take_pictures(url: str, pictures: list[Picture], goal: Path) -> None:
    """Take the pictures one after the other, and print a line about each."""
    from playwright.sync_api import sync_playwright

    urls = addresses()
    goal.mkdir(parents=True, exist_ok=True)
    executable = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    arguments = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--font-render-hinting=none"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        state = signed_in(browser, url)
        for picture in pictures:
            page = browse(browser, url, picture, state)
            answer = page.goto(urls[picture.place])
            if answer is None or answer.status != 200:
                raise SystemExit(f"{picture.place}: the page answered {answer.status if answer else 'nothing'}")
            page.wait_for_load_state("networkidle")
            data = reduce_colours(page.screenshot())
            (goal / f"{picture.name}.png").write_bytes(data)
            print(f"{picture.name}.png  {len(data) / 1000:.0f} kB")
            page.context.close()
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.ui.screenshots", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(picture.name for picture in ALL))
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder (default docs/pictures)")
    options = parser.parse_args()
    known = {picture.name: picture for picture in ALL}
    chosen = [known.get(name) or parse_picture(name) for name in options.names] or list(ALL)
    with product() as url:
        take_pictures(url, chosen, options.to)


def parse_picture(name: str) -> Picture:
    """Return a picture of any page, such as `settings`. Options may follow the page's name, as in
    `settings,dark,390,zh`.
    """
    page_name, *how = name.split(",")
    width = next((int(option) for option in how if option.isdecimal()), 1280)
    scheme, language = "dark" if "dark" in how else "light", "zh-Hans" if "zh" in how else "en"
    return Picture(name.replace(",", "-"), page_name, 1400, scheme, language, width)


if __name__ == "__main__":
    main()
