"""`makemessages` that also finds the cores' sentences, written `translatable("…")`, and skips the tests."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Django's command; cores import no Django, so their sentences have a word of their own."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=translatable"]

    def handle(self, *args: Any, **options: Any) -> None:
        """Reads the three apps and their templates."""
        options["ignore_patterns"] = [*(options.get("ignore_patterns") or ()), "tests", "docs"]
        super().handle(*args, **options)
