"""`makemessages` that also finds the sentences of the cores, and skips tests and docs."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """The cores import no Django, so they mark their sentences with `translatable("…")`."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=translatable"]

    def handle(self, *args: Any, **options: Any) -> None:
        options["ignore_patterns"] = [*(options.get("ignore_patterns") or ()), "tests", "docs"]
        super().handle(*args, **options)
