"""The installed package, which is built from the checkout and run elsewhere with an empty home directory."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.identity.visitors import CSRF
from tests.processes import NO_CERTIFICATES, PROGRAM, RELEASED, free_port, wait_for_success

ROOT = Path(__file__).resolve().parents[2]
EARLIEST = ROOT / "tests" / "upgrade" / "installations" / "before-the-rooms.tar.gz"
"""The data of the earliest version, to which every migration is applied."""
KEY = re.compile(r"agent key  (ra_\S+)")


@dataclass(frozen=True)
class Installed:
    """An installed package: its files, and the home directory of the user who runs it."""

    files: Path
    home: Path

    @property
    def data(self) -> Path:
        return self.home / ".local" / "share" / "routing-admin"

    def environment(self) -> Mapping[str, str]:
        path = {} if RELEASED else {"PYTHONPATH": str(self.files)}
        return {"HOME": str(self.home), "PATH": os.defpath, **path}

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            [*PROGRAM, *arguments], cwd=self.home, env=self.environment(), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def served(self, *options: str) -> Iterator[tuple[str, Path]]:
        """Start the installed program without a subcommand. Yield its URL and its output."""
        port, printed = free_port(), self.home / "printed.txt"
        with printed.open("w") as output:
            process = subprocess.Popen(
                [*PROGRAM, *options, "--port", str(port)],
                cwd=self.home,
                env=self.environment(),
                stdout=output,
                stderr=subprocess.DEVNULL,
            )
        try:
            wait_for_success(f"http://127.0.0.1:{port}/readyz", seconds=90)
            yield f"http://127.0.0.1:{port}", printed
        finally:
            process.terminate()
            process.wait(timeout=40)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("package")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "files")
    (folder / "home").mkdir()
    return Installed(folder / "files", folder / "home")


def test_package_contains_every_tracked_file(installed: Installed) -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    places = {"templates": "routing_admin/files/", "static": "routing_admin/files/", "docs": "routing_admin/files/"}
    programs = ("routing_admin", "capabilities", "artifacts")
    wanted = {
        f"{places.get(name.partition('/')[0], '')}{name}"
        for name in tracked.split("\0")
        if name.partition("/")[0] in (*places, *programs) and name != "capabilities/catalogue/requirements.txt"
    }
    packed = {str(path.relative_to(installed.files)) for path in installed.files.rglob("*") if path.is_file()}
    assert wanted - packed == set()
    assert "manage.py" not in packed


def call(url: str, key: str) -> Any:
    body = {"model": "task:planning", "messages": [{"role": "user", "content": "Hello"}]}
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.loads(response.read())


def test_first_start_answers_a_call_and_serves_every_page(installed: Installed) -> None:
    """Data is stored in the user's folder, and the first start prints its path.

    A call and a backup succeed, and every page of the navigation is served.
    """
    with installed.served() as (url, printed):
        text = printed.read_text()
        assert f"routing_admin: {url}\n" in text
        assert f"data       {installed.data}" in text
        key = KEY.search(text)
        assert key is not None
        assert call(url, key[1])["choices"]
        with urllib.request.urlopen(f"{url}/login/", timeout=20) as response:
            page = response.read().decode()
        style = re.search(r'href="(/static/css/app[^"]+)"', page)
        assert style is not None
        with urllib.request.urlopen(url + style[1], timeout=20) as response:
            assert response.status == 200
        installed.run("backup", str(installed.home / "backup"))
        check_pages(url, text)
    assert (installed.home / "backup").is_dir()
    assert installed.run("--version").startswith("routing-admin 1.")
    assert "ok" in installed.run("doctor")


def check_pages(url: str, printed: str) -> None:
    """Sign in with the printed password. Check that all pages of the navigation and the static files are served."""
    with httpx.Client(base_url=url, verify=NO_CERTIFICATES) as browser:
        password = re.search(r"password   (\S+)", printed)
        assert password is not None
        token = CSRF.search(browser.get("/login/").text)
        assert token is not None
        form = {"username": "admin", "password": password[1], "csrfmiddlewaretoken": token[1]}
        assert browser.post("/login/", data=form).headers["location"] == "/"
        dashboard = browser.get("/").text
        navigation = re.search(r"<nav.*?</nav>", dashboard, re.DOTALL)
        assert navigation is not None
        pages = set(re.findall(r'href="(/[^"#]*)"', navigation[0]))
        files = set(re.findall(r'(?:href|src)="(/static/[^"#]+)"', dashboard))
        assert len(pages) > 12
        assert len(files) > 4
        answers = {path: browser.get(path).status_code for path in pages | files}
        assert {path: status for path, status in answers.items() if status != 200} == {}


def test_start_backs_up_and_upgrades_the_data_of_an_earlier_version(installed: Installed) -> None:
    """An agent's key is still valid. The other contents of upgraded installations are tested in tests/upgrade."""
    data = installed.home / "earlier"
    shutil.unpack_archive(EARLIEST, data)
    for name in ("keys", "secret_key"):
        (data / name).chmod(0o600)
    key = json.loads((data / "expected.json").read_text())["agentKey"]
    with installed.served("--data", str(data)) as (url, printed):
        assert "backup of both databases before the migrations" in printed.read_text()
        assert call(url, key)["choices"]
    assert len([*(data / "backups").iterdir()]) == 1
