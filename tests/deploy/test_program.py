"""The program `routing-admin`: its commands have plain names, and it reports each error in one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from routing_admin import program
from routing_admin.program import COMPLETION, ENTRIES, SHELLS, main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = Path(program.__file__).parent / "management" / "commands"
FOR_DEVELOPERS = {"__init__", "makemessages"}


def test_every_command_has_a_plain_name_and_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    own = {path.stem for path in COMMANDS.glob("*.py")} - FOR_DEVELOPERS
    assert own <= {entry.command for entry in ENTRIES.values()}
    main(["--help"])
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in ENTRIES)
    assert max(map(len, text.splitlines())) <= 120


def test_command_help_contains_only_options_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["help", "import"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert "usage: routing-admin import [-h]" in text
    assert "--dry-run" in text
    assert "--settings" not in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["imprt"], "There is no command imprt. Did you mean import? routing-admin --help lists all."),
        (["xyz"], "There is no command xyz. routing-admin --help lists all."),
        (["--data"], "--data needs a folder, for example: --data /srv/routing-admin"),
        (["completion", "cmd.exe"], "Name a shell: routing-admin completion bash|zsh|fish"),
    ],
)
def test_command_line_usage_error_is_one_line(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err == f"{sentence}\n"


@pytest.mark.parametrize(
    ("arguments", "served"), [([], []), (["--port", "9000"], ["--port", "9000"]), (["--data", "/srv/x"], [])]
)
def test_program_without_a_command_bootstraps_and_serves(
    arguments: list[str], served: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands_run: list[Any] = []
    monkeypatch.setenv("ROUTING_ADMIN_DATA_DIR", "/srv/usual")
    monkeypatch.setenv("ROUTING_ADMIN_PORT", "8000")
    monkeypatch.setattr(program, "call", lambda name, options: commands_run.append((name, options)))
    monkeypatch.setattr(os, "execv", lambda _path, command: commands_run.append(command[1:]))
    main(arguments)
    assert commands_run == [("bootstrap", []), ["-m", "routing_admin", "serve", *served]]
    assert os.environ["ROUTING_ADMIN_PORT"] == ("9000" if "--port" in arguments else "8000"), "it is printed first"
    assert os.environ["ROUTING_ADMIN_DATA_DIR"] == ("/srv/x" if "--data" in arguments else "/srv/usual")


@pytest.mark.parametrize("shell", SHELLS)
def test_completions_contain_every_command_and_its_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([COMPLETION, shell])
    script = capsys.readouterr().out
    assert all(name in script for name in ENTRIES)
    assert "dry-run" in script


def test_program_of_a_checkout_runs_from_any_folder(tmp_path: Path) -> None:
    """`make` writes the program next to the virtual environment's Python, even if that belongs to another checkout."""
    checkout = tmp_path / "a checkout"
    (checkout / ".venv" / "bin").mkdir(parents=True)
    for name in ("Makefile", "routing_admin", "pyproject.toml"):
        (checkout / name).symlink_to(ROOT / name)
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    for name in ("pyvenv.cfg", "lib"):
        (checkout / ".venv" / name).symlink_to(Path(sys.prefix) / name)
    subprocess.run(["make", ".venv/bin/routing-admin"], cwd=checkout, capture_output=True, check=True)
    command = [checkout / ".venv" / "bin" / "routing-admin", "--version"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout.startswith(b"routing-admin ")


def test_bash_completes_an_option() -> None:
    script = subprocess.run(
        [sys.executable, "-m", "routing_admin", COMPLETION, "bash"], capture_output=True, text=True, check=True
    ).stdout
    completion_script = (
        f"{script}\nCOMP_WORDS=(routing-admin import --d) COMP_CWORD=2\n_routing_admin\necho ${{COMPREPLY[@]}}"
    )
    completed = subprocess.run(["bash", "-c", completion_script], capture_output=True, text=True, check=True)
    assert completed.stdout.split() == ["--dry-run"]
