"""The search page Find, and the list of matches that the search dialog on every page shows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from capabilities.access import role_for
from routing_admin.configuration import snapshot
from routing_admin.console.find.findables import (
    link_full_lists,
    list_findables,
    list_searches,
    list_suggestions,
    write_total,
)
from routing_admin.core.ranking import FoundKind, Ranking, rank

MAX_QUERY_CHARS = 100
"""Maximum number of characters of the search text. The input field accepts no more."""

KIND_NAMES: dict[FoundKind, Any] = {
    FoundKind.PAGE: gettext_lazy("Page"),
    FoundKind.ACT: gettext_lazy("Action"),
    FoundKind.ROUTE: gettext_lazy("Task route"),
    FoundKind.PROVIDER: gettext_lazy("Provider"),
    FoundKind.SERVICE: gettext_lazy("Model service"),
    FoundKind.AGENT: gettext_lazy("Agent"),
    FoundKind.ALIAS: gettext_lazy("Alias"),
    FoundKind.KEY: gettext_lazy("Key"),
    FoundKind.PERSON: gettext_lazy("User"),
    FoundKind.REQUEST: gettext_lazy("Request"),
    FoundKind.ARTIFACT: gettext_lazy("Artifact"),
    FoundKind.SETTING: gettext_lazy("Setting"),
    FoundKind.DOCUMENT: gettext_lazy("Documentation"),
}


@require_safe
def find(request: HttpRequest) -> HttpResponse:
    """Show the pages, entries and actions that match `q` and that the user may use, best matches first.

    Without `q`, show suggestions.
    """
    typed = request.GET.get("q", "")[:MAX_QUERY_CHARS]
    # PostgreSQL does not accept NUL characters in text.
    words, role = " ".join(typed.replace("\0", "").split()), role_for(request.user)
    state = snapshot.current()
    suggestions = list(list_suggestions(role, is_first=not words))
    ranking = Ranking(tuple(suggestions), {})
    if words:
        ranking = rank(words, [*suggestions, *list_findables(role, words, state)])
    context = {
        "typed": typed,
        "words": words,
        "count": len(ranking.shown),
        "total": write_total(ranking, FoundKind) if ranking.cut else "",
        "rows": [{"thing": result, "kind": KIND_NAMES[result.kind]} for result in ranking.shown],
        "searches": (*link_full_lists(words, ranking), *list_searches(words, state)) if words else (),
        "longest": MAX_QUERY_CHARS,
    }
    is_list = request.htmx.target == "options"  # type: ignore[attr-defined]
    return render(request, "find/options.html" if is_list else "find/find.html", context)
