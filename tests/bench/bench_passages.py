"""`python -m tests.bench.bench_passages`: count the files that an action runs through, and the calls between them.

A call from one of our files to another is a move. Django and libraries in between do not count. The fewer files and
moves an action has, the easier its code is to follow.
"""

from __future__ import annotations

import html
import re
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.bench.bench_pages import administrator, begin
from tests.bench.table import show

ROOT = Path(__file__).resolve().parents[2]
OURS = tuple(f"{ROOT / app}/" for app in ("capabilities", "artifacts", "routing_admin"))


class FileTrace:
    """The files that an action runs through. `moves` counts the calls from one of these files to another."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.moves = 0

    def watch(self, action: Callable[[], Any]) -> Any:
        """Run the action, recording the calls in all threads, and return its result."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            return action()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        here = _ours(frame)
        if event != "call" or not here:
            return
        self.files.add(here)
        above = frame.f_back
        while above is not None and not _ours(above):
            above = above.f_back
        self.moves += above is not None and _ours(above) != here


def _ours(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    return name if name.startswith(OURS) else ""


def actions() -> dict[str, Callable[[], Any]]:
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.test import Client

    from tests.cast import create_key
    from tests.gateway.plane import chat_body, post

    key, browser = create_key("text-agent"), administrator()
    file = (ROOT / "routing_admin/console/demo/llm-routing.json").read_text()
    fields = _fields(browser.get("/routes/planning/").content.decode())

    def upload() -> Any:
        uploaded = SimpleUploadedFile("notes.txt", b"A few words.\n", "text/plain")
        return Client().post("/api/v1/artifacts", {"file": uploaded}, headers={"authorization": f"Bearer {key}"})

    return {
        "a text chat": lambda: post(key, chat_body("Plan my day")),
        "an upload": upload,
        "an import preview": lambda: browser.post("/config/import/", {"text": [file], "mode": "merge"}),
        "a route save": lambda: browser.post("/routes/planning/", {**fields, "retries": "1", "act": "save"}),
    }


def _fields(page: str) -> dict[str, list[str]]:
    """Return a page's form fields with their values, as a browser would send them."""
    fields: dict[str, list[str]] = {}
    for tag in re.findall(r"<input\b[^>]*>", page):
        if not re.search(r'type="(checkbox|radio)"', tag) or " checked" in tag:
            _note_field(fields, tag, tag)
    for tag, inside in re.findall(r"(<select\b[^>]*>)(.*?)</select>", page, re.DOTALL):
        options = re.findall(r"<option\b[^>]*>", inside)
        _note_field(fields, tag, next((option for option in options if " selected" in option), options[0]))
    return fields


def _note_field(fields: dict[str, list[str]], tag: str, holder: str) -> None:
    name, value = re.search(r'\bname="([^"]+)"', tag), re.search(r'\bvalue="([^"]*)"', holder)
    if name:
        fields.setdefault(name[1], []).append(html.unescape(value[1]) if value else "")


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as folder:
        begin(Path(folder))
        rows = []
        for name, action in actions().items():
            if name != "a route save":
                action()
            passage = FileTrace()
            status = passage.watch(action).status_code
            rows.append((name, status, len(passage.files), passage.moves))
        show("Files of ours that an act passes through", ("act", "status", "files", "moves"), rows)


if __name__ == "__main__":
    main()
