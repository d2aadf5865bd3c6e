"""Django's `makemessages`, which also finds messages in the `core` packages and skips tests and docs."""

from __future__ import annotations

from typing import Any

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Also collect messages marked with `translatable("…")`, because the `core` packages do not import Django."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=translatable"]

    def handle(self, *args: Any, **options: Any) -> None:
        options["ignore_patterns"] = [*(options.get("ignore_patterns") or ()), "tests", "docs"]
        super().handle(*args, **options)
