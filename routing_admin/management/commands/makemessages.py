"""`makemessages` that also finds messages in the `core` packages, and skips tests and docs."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """The `core` packages do not import Django, so they mark their messages with `translatable("…")`."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=translatable"]

    def handle(self, *args: Any, **options: Any) -> None:
        options["ignore_patterns"] = [*(options.get("ignore_patterns") or ()), "tests", "docs"]
        super().handle(*args, **options)
