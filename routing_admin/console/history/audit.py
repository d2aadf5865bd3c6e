"""The audit log's page and the export of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from artifacts.core.store import BLOCK
from artifacts.storage.content import iterate_async
from capabilities.access import may, request_actor
from capabilities.core.permissions import PagePart
from capabilities.core.providers.redaction import redact
from routing_admin.configuration.revisions import DRILL_END
from routing_admin.console.base.lists import FilterChip, page_size
from routing_admin.console.base.readings import record_audit_export
from routing_admin.console.base.tags.ui import short_name
from routing_admin.console.drills.queries import describe_recorded_end
from routing_admin.console.history import phrases as words
from routing_admin.console.history.details import list_details
from routing_admin.console.history.queries import (
    AuditFilter,
    AuditForm,
    count_entries,
    export_audit,
    list_audit_events,
)
from routing_admin.console.history.views import ICONS, MAX_DIGITS, read_cursor

if TYPE_CHECKING:
    from routing_admin.models import AuditEvent

TEXTS, DAYS = ("action", "actor", "object"), ("since", "until")
REVISION = "revision"
FILTERS: Mapping[str, str | Promise] = {
    "object": gettext_lazy("What"),
    "action": gettext_lazy("Action"),
    "actor": gettext_lazy("Who"),
    REVISION: gettext_lazy("Revision"),
    "since": gettext_lazy("From date"),
    "until": gettext_lazy("To date"),
}
"""Labels of the page's filters, by query parameter."""
TYPES: Mapping[AuditForm, str] = {
    AuditForm.CSV: "text/csv; charset=utf-8",
    AuditForm.JSON_LINES: "application/jsonl; charset=utf-8",
}
SIGN_INS = {"user.sign_in", "user.sign_in_failed", "user.sign_out"}
MEMORY_BYTES = 4 * 1024 * 1024
"""Maximum number of bytes of an export that are kept in memory. A larger export uses a temporary file."""


@require_GET
def audit(request: HttpRequest) -> HttpResponse:
    parameters, size = _parameters(request), page_size(request)
    if "" in request.GET.values():  # The form also sends its empty fields. Redirect to a URL without them.
        return redirect(link(parameters))
    page = list_audit_events(_filter(parameters), read_cursor(request), size)
    counts = count_entries(event.revision for event in page.rows if event.revision and not event.object_name)
    context = {
        "events": [audit_line(group, parameters, counts) for group in group_sign_ins(page.rows)],
        "count": len(page.rows),
        "filter": parameters,
        "chips": [
            FilterChip(
                key=FILTERS[name], label=_value_text(name, value), url=link(parameters, **{name: ""}), is_on=True
            )
            for name, value in parameters.items()
        ],
        "acts": sorted(words.ACTS.items(), key=lambda pair: str(pair[1])),
        "size": size,
        "may_export": may(request.user, PagePart.EXPORTS),
        "query": urlencode(parameters),
        "older": link(parameters, before=page.rows[-1].number) if page.has_older and page.rows else "",
        "newer": link(parameters, after=page.rows[0].number) if page.has_newer and page.rows else "",
    }
    return render(request, "history/audit.html", context)


@require_GET
def audit_export(request: HttpRequest, form: str) -> HttpResponseBase:
    """Send the audit events that match the page's filters as a file. Raise `Http404` for an unknown file format."""
    if form not in set(AuditForm):
        raise Http404
    file_format, parameters = AuditForm(form), _parameters(request)
    record_audit_export(request_actor(request), {"form": form, **parameters})
    file: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115 - closed behind the last block
    if file_format is AuditForm.CSV:
        file.write(b"\xef\xbb\xbf")  # The byte order mark makes spreadsheet programs read the file as UTF-8.
    file.writelines(line.encode() for line in export_audit(_filter(parameters), file_format))
    size = file.tell()
    file.seek(0)
    blocks = _blocks(file)
    # Under ASGI, a thread reads blocks from the file, so that a slow disk does not block the event loop.
    body = iterate_async(blocks) if isinstance(request, ASGIRequest) else blocks
    answer = StreamingHttpResponse(body, content_type=TYPES[file_format], headers={"Content-Length": str(size)})
    answer["Content-Disposition"] = f'attachment; filename="audit-{timezone.localdate()}.{form}"'
    return answer


def _blocks(file: SpooledTemporaryFile[bytes]) -> Iterator[bytes]:
    with file:
        while block := file.read(BLOCK):
            yield block


def _parameters(request: HttpRequest) -> dict[str, str]:
    # An invalid date is ignored, so the page shows more events instead of an error.
    typed = {name: request.GET.get(name, "").strip() for name in FILTERS}
    return {name: value for name, value in typed.items() if value and _is_valid(name, value)}


def _is_valid(name: str, value: str) -> bool:
    if name == REVISION:
        return value.isdecimal() and len(value) <= MAX_DIGITS
    return name in TEXTS or _parse_day(value) is not None


def _value_text(name: str, value: str) -> str | Promise:
    return words.action_label(value) if name == "action" else value


def _filter(parameters: Mapping[str, str]) -> AuditFilter:
    action, actor, object_name = (parameters.get(name, "") for name in TEXTS)
    since, until = (_parse_day(parameters.get(name, "")) for name in DAYS)
    revision = int(parameters[REVISION]) if REVISION in parameters else None
    return AuditFilter(action=action, actor=actor, object=object_name, revision=revision, since=since, until=until)


def _parse_day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditLine:
    """An audit event as a line of the log, with links that filter by its action and its actor.

    If the event names no object, `count` is the number of entries that its revision changed, else 0. `earlier` contains
    earlier sign-ins that are combined with it in the same line.
    """

    event: AuditEvent
    earlier: Sequence[AuditEvent]
    label: Any
    icon: str
    name: str
    details: str
    count: int
    same_action: str
    same_actor: str
    sentence: str = ""


def group_sign_ins(events: Iterable[AuditEvent]) -> Iterator[list[AuditEvent]]:
    """Group successive sign-ins of a user from one IP address. Each other audit event is a group of its own."""
    for key, group in groupby(events, lambda event: (event.action, event.actor, event.object_name, event.address)):
        if key[0] in SIGN_INS:
            yield list(group)
        else:
            yield from ([event] for event in group)


def audit_line(events: Sequence[AuditEvent], parameters: Mapping[str, str], counts: Mapping[int, int]) -> AuditLine:
    """Return the line of a group of events, with the newest event's details. Text that looks like a key is masked."""
    event, *earlier = events
    sentence = describe_recorded_end(event.details) if event.action == DRILL_END else ""
    facts = dict(event.details)
    # Users know files by name, not by reference.
    name = facts.pop("filename", "") if event.object_kind == "artifact" else ""
    lines = [*([(_("Reference"), event.object_name)] if name else []), *list_details(facts)]
    # Text without spaces, such as a file name, is shortened. Text with spaces can wrap.
    details = format_html_join(
        " · ",
        "{}{}{}",
        ((label, _(": "), text if " " in text else short_name(text)) for label, text in lines),
    )
    return AuditLine(
        event=event,
        earlier=earlier,
        label=words.action_label(event.action),
        icon=ICONS.get(event.actor_kind, "user"),
        name=redact(name) or event.object_name,
        details=details,
        count=0 if event.object_name else counts.get(event.revision or 0, 0),
        same_action=link(parameters, action=event.action),
        same_actor=link(parameters, actor=event.actor),
        sentence=sentence,
    )


def link(parameters: Mapping[str, str], **changes: str | int) -> str:
    """Return the page's URL with these parameters changed. Empty values are removed."""
    query = {name: value for name, value in {**parameters, **changes}.items() if value}
    return f"{reverse('audit')}?{urlencode(query)}"
