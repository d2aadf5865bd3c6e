"""The program `routing-admin`: the commands of `manage.py`, some of them under shorter or clearer names.

Without a command, it prepares the installation and starts the server. Options, messages and exit status are the same as
those of `manage.py`.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NoReturn

from routing_admin.platform.garbage import collect_rarely

NAME = "routing-admin"
USAGE_STATUS = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """A command: its name in this program, its name in `manage.py`, and what it does."""

    name: str
    command: str
    summary: str


GROUPS: Mapping[str, Sequence[Entry]] = {
    "Run": (
        Entry("serve", "serve", "serve the pages and the API until Ctrl-C"),
        Entry("bootstrap", "bootstrap", "prepare what is missing: tables, administrator, demo"),
        Entry("doctor", "doctor", "check databases, configuration, keys and files"),
        Entry("try-again", "try_again", "call providers again that cool down after failures"),
    ),
    "Configuration": (
        Entry("import", "import_config", "import llm-routing.json or llmservices.json"),
        Entry("export", "export_config", "write one of them"),
        Entry("check", "check_config", "check files, or what is configured"),
        Entry("set-provider-key", "set_provider_key", "set a provider's key, read from standard input"),
        Entry("refresh-catalogue", "refresh_catalogue", "read a newer catalogue of models"),
        Entry("probe", "probe_services", "ask models what they read"),
        Entry("import-files", "import_artifacts", "store every file below a folder as an artifact"),
    ),
    "Agents and people": (
        Entry("create-agent", "create_agent", "create an agent, with --key also its key"),
        Entry("issue-key", "issue_agent_key", "issue a key for an agent"),
        Entry("revoke-key", "revoke_key", "revoke a key, token or link that leaked"),
        Entry("set-password", "changepassword", "set a person's password"),
    ),
    "Data": (
        Entry("backup", "backup", "save databases, files and configuration to a folder"),
        Entry("restore", "restore", "restore a backup"),
        Entry("move-data", "move_data", "copy everything to another database or store"),
        Entry("prune", "prune", "remove what has expired; run it daily"),
        Entry("rotate-keys", "rotate_keys", "encrypt stored keys with a new secret"),
        Entry("audit-export", "audit_export", "write the audit log"),
        Entry("audit-verify", "audit_verify", "check that the audit log is complete and unchanged"),
    ),
}
ENTRIES = {entry.name: entry for entries in GROUPS.values() for entry in entries}
COMPLETION = "completion"
SHELLS = ("bash", "zsh", "fish")
USAGE = f"""\
Usage: {NAME} [--data FOLDER] [COMMAND] [OPTIONS]

Without a command it prepares what is missing and serves at http://127.0.0.1:8000, with the options of serve."""
END = f"""\
Shell
  {COMPLETION:<18}print completions for {", ".join(SHELLS)}

{NAME} COMMAND --help describes a command. Settings are environment variables: ROUTING_ADMIN_…"""


def run() -> None:
    """Run the program with the command-line arguments of this process."""
    main(sys.argv[1:])


def main(arguments: Sequence[str]) -> None:
    """Run a command, or prepare the installation and start the server. Raise `SystemExit` if that fails."""
    collect_rarely()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
    name, *rest = _take_folder(arguments) or [""]
    if name in ("-h", "--help", "help"):
        _help(rest)
    elif name in ("-V", "--version"):
        from routing_admin.paths import program_version

        print(NAME, program_version())
    elif name == COMPLETION:
        print(_complete(rest[0] if rest else ""))
    elif not name or name.startswith("-"):
        options = [name, *rest] if name else []
        _take_address(options)
        call("bootstrap", [])
        from routing_admin.paths import IS_INSTALLED

        # Replace this process with the server, so that nothing from the preparation stays in memory. The current folder
        # may be a checkout; -P prevents an installed program from importing its modules.
        python = [sys.executable, *(["-P"] if IS_INSTALLED else [])]
        sys.stdout.flush()
        os.execv(sys.executable, [*python, "-m", "routing_admin", "serve", *options])  # noqa: S606
    else:
        call(name, rest)


def _take_folder(arguments: Sequence[str]) -> list[str]:
    first, *rest = arguments or [""]
    option, equals, folder = first.partition("=")
    if option != "--data":
        return list(arguments)
    if not equals:
        folder, *rest = rest or [""]
    if not folder:
        _refuse("--data needs a folder, for example: --data /srv/routing-admin")
    os.environ["ROUTING_ADMIN_DATA_DIR"] = folder
    return rest


def _take_address(options: Sequence[str]) -> None:
    parser = ArgumentParser(NAME, add_help=False, allow_abbrev=False)
    parser.add_argument("--host")
    parser.add_argument("--port")
    for option, value in vars(parser.parse_known_args(options)[0]).items():
        if value:
            os.environ[f"ROUTING_ADMIN_{option.upper()}"] = value


def call(name: str, arguments: Sequence[str]) -> None:
    """Run one of `ENTRIES` or any command of `manage.py`. Raise `SystemExit` if the command fails or is unknown."""
    import django
    from django.core.management import get_commands, load_command_class
    from django.core.management.base import BaseCommand

    try:
        django.setup()
        command = ENTRIES[name].command if name in ENTRIES else name.replace("-", "_")
        application = get_commands().get(command)
        if application is None:
            near = get_close_matches(name, ENTRIES, 1)
            hint = f"Did you mean {near[0]}? " if near else ""
            _refuse(f"There is no command {name}. {hint}{NAME} --help lists all.")
        loaded = application if isinstance(application, BaseCommand) else load_command_class(application, command)
        loaded.run_from_argv([NAME, name, *arguments])
    # Make Django's own commands also end with a one-line message if the database does not respond.
    except Exception as error:
        from routing_admin.platform.databases.explaining import explain_failure

        line = explain_failure(error)
        if line is None:
            raise
        sys.exit(f"Error: {line}")


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(USAGE_STATUS)


def _help(names: Sequence[str]) -> None:
    if names:
        call(names[0], ["--help"])
    groups = (
        "\n".join([title, *(f"  {entry.name:<18}{entry.summary}" for entry in entries)])
        for title, entries in GROUPS.items()
    )
    print("\n\n".join([USAGE, *groups, END]))


# The remaining functions generate shell completions for commands and options.


def _complete(shell: str) -> str:
    if shell not in SHELLS:
        _refuse(f"Name a shell: {NAME} {COMPLETION} {'|'.join(SHELLS)}")
    options = {entry.name: list(_list_options(entry)) for entry in ENTRIES.values()}
    if shell == "fish":
        return "\n".join(_fish(options))
    names = " ".join([*ENTRIES, COMPLETION, "--data", "--help", "--version"])
    cases = "\n".join(f"    {name}) words='{' '.join(words)}' ;;" for name, words in options.items())
    load = "autoload -U +X bashcompinit && bashcompinit\n" if shell == "zsh" else ""
    return f"""{load}_routing_admin() {{
  local words='{names}'
  case "${{COMP_WORDS[1]}}" in
{cases}
    {COMPLETION}) words='{" ".join(SHELLS)}' ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words='{names}'
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _routing_admin {NAME}"""


def _fish(options: Mapping[str, Sequence[str]]) -> Iterator[str]:
    start = f"complete -c {NAME} -n __fish_use_subcommand -f"
    yield f"{start} -a {COMPLETION} -d 'print completions'"
    for entry in ENTRIES.values():
        summary = entry.summary.replace("'", "\\'")
        yield f"{start} -a {entry.name} -d '{summary}'"
        for option in options[entry.name]:
            yield f"complete -c {NAME} -n '__fish_seen_subcommand_from {entry.name}' -l {option.removeprefix('--')}"


def _list_options(entry: Entry) -> Iterator[str]:
    import django
    from django.core.management import get_commands, load_command_class

    django.setup()
    parser = load_command_class(str(get_commands()[entry.command]), entry.command).create_parser(NAME, entry.name)
    yield from dict.fromkeys(re.findall(r"(?<=[ \[])--[a-z-]+", parser.format_usage()))
