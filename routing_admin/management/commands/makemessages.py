"""`makemessages` that finds the sentences of the cores, too: those written `worded("…")`."""

from __future__ import annotations

from django.core.management.commands import makemessages


class Command(makemessages.Command):
    """Django's command; cores import no Django, so their sentences have a word of their own."""

    xgettext_options = [*makemessages.Command.xgettext_options, "--keyword=worded"]
