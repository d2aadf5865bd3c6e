"""`python -m tests.upgrade.make OUT.tar.gz`: create a small installation with this version of the product.

It only uses commands, pages and API calls, so that it runs with every version. `expected.json` describes the contents
of the installation. It includes secrets, which are not used anywhere else.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import sys
import tarfile
import tempfile
import warnings
from pathlib import Path
from typing import Any

PROVIDER_KEY = "sk-of-no-provider-0123456789abcdef"
PASSWORD = "correct horse battery staple"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CHINESE = "第一行\n第二行：测试文件\n" * 20


def set_up_installation(folder: Path) -> None:
    """Set up Django for the data directory, and run `bootstrap`, which creates or migrates the installation."""
    for name in [name for name in os.environ if name.startswith(("ROUTING_ADMIN_", "LLM_"))]:
        del os.environ[name]
    os.environ |= {
        "ROUTING_ADMIN_DATA_DIR": str(folder),
        "ROUTING_ADMIN_ADMIN_PASSWORD": PASSWORD,
        "ROUTING_ADMIN_ALLOWED_HOSTS": "testserver",
        "DJANGO_SETTINGS_MODULE": "routing_admin.settings",
    }
    import django

    django.setup()
    warnings.filterwarnings("ignore", "No directory at")
    command("bootstrap")


def command(*arguments: str) -> str:
    from django.core.management import call_command

    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue().strip()


class Maker:
    """Fills the installation, as an administrator with a browser and as an agent with a key."""

    def __init__(self, folder: Path) -> None:
        from django.test import Client

        self.folder, self.agent, self.browser = folder, Client(), Client()
        self.browser.login(username="admin", password=PASSWORD)
        self.key = command("issue_agent_key", "text-agent")
        self.headers = {"authorization": f"Bearer {self.key}"}

    def configure(self) -> None:
        """Create several revisions: a provider with a stored key, a route to it, and later changes."""
        file = json.loads(command("export_config", "llm-routing"))
        file["providers"].append(
            {
                "providerName": "keyed",
                "apiKey": PROVIDER_KEY,
                "endpoint": "https://keyed.example/v1/chat/completions",
                "defaultModel": "m",
            }
        )
        file["routing"]["through-keyed"] = {"provider": "keyed", "fallback": ["echo/echo-text"], "temperature": 0}
        path = self.folder / "import.json"
        for temperature in (0, 0.5, 1):
            file["routing"]["through-keyed"]["temperature"] = temperature
            path.write_text(json.dumps(file))
            command("import_config", str(path))
        path.unlink()
        self.browser.post("/aliases/", {"name": "gpt-4o", "target": "task:through-keyed"})
        kept = {"default_language": "zh", "content_policy": "extract+convert", "request_days": 30}
        self.browser.post("/settings/", {**kept, "record_bodies": "1"})
        self.browser.post("/users/invite/", {"username": "mei", "role": "viewer"})

    def store(self) -> dict[str, str]:
        """Store a text file in GB18030 and an image. Return each file's SHA-256 by its artifact reference."""
        from django.core.files.uploadedfile import SimpleUploadedFile

        files = {"笔记.txt": CHINESE.encode("gb18030"), "dot.png": PNG}
        hashes = {}
        for name, data in files.items():
            answer = self.agent.post(
                "/api/v1/artifacts", {"file": SimpleUploadedFile(name, data)}, headers=self.headers
            )
            hashes[answer.json()["ref"]] = hashlib.sha256(data).hexdigest()
        return hashes

    def ask(self, artifact: str) -> dict[str, int]:
        """Send requests with different results. Return each request's status by its id."""
        image = {"type": "image_url", "image_url": {"url": artifact}}
        text = {"type": "text", "text": "What is this? 这是什么"}
        bodies: tuple[dict[str, Any], ...] = (
            {"model": "task:planning", "messages": [{"role": "user", "content": "Plan my day"}]},
            {"model": "task:design", "messages": [{"role": "user", "content": [text, image]}]},
            {"model": "gpt-4o", "messages": [{"role": "user", "content": "through the key"}]},
            {"model": "echo/echo-503", "messages": [{"role": "user", "content": "fail"}]},
            {"model": "task:planning", "messages": [{"role": "user", "content": "in pieces"}], "stream": True},
            {"model": "no-such-model", "messages": [{"role": "user", "content": "hello"}]},
        )
        statuses = {}
        for number, body in enumerate(bodies):
            request_id = f"req_upgrade_{number}"
            answer = self.agent.post(
                "/v1/chat/completions",
                json.dumps(body),
                content_type="application/json",
                headers={**self.headers, "x-request-id": request_id},
            )
            if answer.streaming:
                b"".join(answer)
            statuses[request_id] = answer.status_code
            self.agent.get(f"/api/v1/requests/{request_id}", headers=self.headers)
        return statuses


def make(folder: Path) -> None:
    set_up_installation(folder)
    maker = Maker(folder)
    maker.configure()
    artifacts = maker.store()
    requests = maker.ask(list(artifacts)[-1])
    revisions = maker.browser.get("/history/").content.decode()
    expected = {
        "agentKey": maker.key,
        "password": PASSWORD,
        "providerKey": PROVIDER_KEY,
        "artifacts": artifacts,
        "requests": requests,
        "revisions": max(number for number in range(1, 50) if f'/history/{number}/"' in revisions),
        "configuration": json.loads(command("export_config", "llm-routing")),
    }
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=2) + "\n")
    from django.db import connections

    for alias in connections:
        with connections[alias].cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connections[alias].close()


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="routing-admin-upgrade-") as directory:
        folder = Path(directory) / "data"
        folder.mkdir()
        make(folder)
        with tarfile.open(sys.argv[1], "w:gz") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name)


if __name__ == "__main__":
    main()
