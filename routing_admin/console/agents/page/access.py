"""Who comes in by a link: whose page it opens, how often one may try, and what every answer says to the browser.

Nothing is posted: from a page that tells nobody its address (`Referrer-Policy: no-referrer`) a browser sends no origin
by which a form could be checked. So language and theme are asked for in the address, and kept in this browser alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from capabilities.core.services.agents import LINK_KIND, public_part_in
from routing_admin.console.agents.actions import note_visit
from routing_admin.console.agents.queries import open_link
from routing_admin.console.base.session import remember_theme
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.signin import address_of
from routing_admin.platform.auth import throttle

if TYPE_CHECKING:
    from capabilities.models import AgentLink

HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store, private",
}
"""What keeps the secret of the address where it is."""


def by_link(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The view, which gets the row of a good link before its other arguments.

    Every other link is answered with one page: 404, or 429 after too many of them from one address.
    """

    @wraps(view)
    def answer(request: HttpRequest, link: str, **rest: Any) -> HttpResponse:
        row, wait = try_link(request, link)
        if row is None:
            response = refuse_link(request, wait)
        else:
            note_visit(row, link)
            response = keep_choice(request) or view(request, row, link, **rest)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return require_safe(answer)


def try_link(request: HttpRequest, text: str) -> tuple[AgentLink | None, int]:
    """The link of that text, and the seconds to wait where too many were tried; whoever waits is not let in.

    What another site made a browser ask for is not counted: fifty images on a page would lock its reader's office out.
    """
    name, address = public_part_in(text), address_of(request)
    if wait := throttle.find_wait(name, address, kind=LINK_KIND):
        return None, wait
    row = open_link(text)
    if row is not None or request.headers.get("Sec-Fetch-Site") == "cross-site":
        return row, 0
    return None, throttle.enter(name, address, kind=LINK_KIND)


def refuse_link(request: HttpRequest, wait: int = 0) -> HttpResponse:
    """The page for what opens nothing: it says neither why nor whose it was."""
    status = 429 if wait else 404
    response = render(request, "agent_page/refused.html", {"wait": wait, "minutes": -(-wait // 60)}, status=status)
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


def keep_choice(request: HttpRequest) -> HttpResponse | None:
    """Back to the page in the language or theme that its address asks for; None where it asks for none."""
    language, theme = request.GET.get("language", ""), request.GET.get("theme", "")
    if not (language or theme):
        return None
    response = redirect(request.path)
    remember_language(response, language if language in dict(settings.LANGUAGES) else "")
    remember_theme(response, theme)
    return response
