"""`python -m tests.upgrade.look FOLDER`: upgrade the installation in the folder, and print its contents as JSON."""

from __future__ import annotations

import hashlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from tests.upgrade.make import PASSWORD, command, set_up_installation

ADMIN = "admin"


def look(folder: Path) -> dict[str, Any]:
    """Upgrade the installation and collect what its pages, APIs and commands return. Then undo and restore
    revisions.
    """
    set_up_installation(folder)
    expected = json.loads((folder / "expected.json").read_text())
    from django.test import Client

    browser, agent = Client(), Client()
    signed_in = browser.login(username=ADMIN, password=PASSWORD)
    headers = {"authorization": f"Bearer {expected['agentKey']}"}
    revisions = range(1, expected["revisions"] + 1)
    contents = {
        "signedIn": signed_in,
        "revisions": [browser.get(f"/history/{number}/").status_code for number in revisions],
        "audit": browser.get("/history/audit/").status_code,
        "requests": {request_id: read_page(browser, request_id) for request_id in expected["requests"]},
        "timelines": {
            request_id: agent.get(f"/api/v1/requests/{request_id}", headers=headers).json().get("status")
            for request_id in expected["requests"]
        },
        "artifacts": {
            ref: hashlib.sha256(join_bytes(agent.get(f"/api/v1/artifacts/{ref}/raw", headers=headers))).hexdigest()
            for ref in expected["artifacts"]
        },
        "models": agent.get("/v1/models", headers=headers).status_code,
        "configuration": json.loads(command("export_config", "llm-routing")),
        "providerKey": provider_key(),
        "doctor": doctor(),
    }
    return {**contents, "undone": undo(browser, expected["revisions"]), "restored": restore(browser)}


def read_page(browser: Any, request_id: str) -> dict[str, Any]:
    """Return the status and text of a logged request's page, including the recorded body."""
    answer = browser.get(f"/requests/{request_id}/")
    text = answer.content.decode()
    if answer.status_code == 200 and "?body" in text:
        text += browser.get(f"/requests/{request_id}/?body=1").content.decode()
    return {"status": answer.status_code, "text": text}


def join_bytes(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else bytes(answer.content)


def provider_key() -> str:
    from routing_admin.configuration import snapshot

    return snapshot.current().keys["keyed"].value or ""


def doctor() -> str:
    from django.core.management import call_command

    problems = io.StringIO()
    try:
        call_command("doctor", stdout=io.StringIO(), stderr=problems)
    except SystemExit:
        problems.write("\n(exit status 1)")
    return problems.getvalue()


def undo(browser: Any, newest: int) -> list[str]:
    """Undo the newest revision, which added an alias, and return the remaining aliases."""
    from routing_admin.configuration import snapshot

    browser.post(f"/undo/{newest}/")
    return [alias.name for alias in snapshot.current().configuration.aliases]


def restore(browser: Any) -> float:
    """Restore the oldest revision that contains the route, and return the route's temperature."""
    browser.post("/history/2/restore/", {"seen": "1"})
    routing = json.loads(command("export_config", "llm-routing"))["routing"]
    return float(routing["through-keyed"]["temperature"])


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
