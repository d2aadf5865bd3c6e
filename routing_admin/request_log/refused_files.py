"""Which files a model refused in a request, though it was said to read them: found once the request is logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from capabilities.core.delivery.decision import Outcome
from capabilities.core.vocabulary import CAPABILITY_OF_KIND, Kind
from capabilities.core.wire import Fault
from capabilities.doubts import RefusedFile, noted_refusals
from routing_admin.core.fallback.chain import Attempt
from routing_admin.request_log.entries import Entry
from routing_admin.request_log.sent_files import SentFile

MISMATCH = Fault.CAPABILITY_MISMATCH.value


def note_refused_files(entries: Iterable[Entry]) -> None:
    """Remembers what models refused in these requests; nothing where no files were sent."""
    for entry in entries:
        if entry.sent:
            for refused in find_refused_files(entry):
                noted_refusals().note(refused)


def find_refused_files(entry: Entry) -> Iterator[RefusedFile]:
    """The refusals of a request: a provider said, with a status, that its model takes no such content."""
    for at, attempt in enumerate(entry.attempts):
        status = next((one.status_code for one in attempt.tries if one.outcome == MISMATCH and one.status_code), None)
        capabilities = _refused_kinds(attempt, entry.sent.get(at, ())) if status else frozenset[str]()
        if capabilities:
            yield RefusedFile(
                attempt.provider, attempt.model, capabilities, entry.facts.id[:64], status, entry.facts.began
            )


def _refused_kinds(attempt: Attempt, files: Iterable[SentFile]) -> frozenset[str]:
    """What the refused files may have needed: those that were described instead, or, where nothing was tried instead,
    what the provider named, else all that went as they are.
    """
    gave_up = attempt.outcome == MISMATCH
    if gave_up and attempt.param:
        return frozenset({attempt.param})
    native = (Outcome.NATIVE, Outcome.CONVERTED, Outcome.HOISTED)
    kinds = (file.kind for file in files if (file.delivery.outcome in native) is gave_up)
    return frozenset(CAPABILITY_OF_KIND[Kind(kind)] for kind in kinds)
