"""Access by link: which agent's page a link opens, how attempts are throttled, which headers every response has.

All requests are GET. Under `Referrer-Policy: no-referrer` a browser sends no origin, so a posted form could not be
verified. Language and theme are therefore chosen by query parameters and stored in cookies.
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

# The secret is part of the URL: keep it out of referrers, search engines and shared caches.
HEADERS = {
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex, nofollow",
    "Cache-Control": "no-store, private",
}


def by_link(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorate a view so that it gets the row of a valid link before its other arguments.

    Every other link returns the same page with 404, or with 429 after too many attempts from one IP address.
    """

    @wraps(view)
    def answer(request: HttpRequest, link: str, **kwargs: Any) -> HttpResponse:
        row, wait = try_link(request, link)
        if row is None:
            response = refuse_link(request, wait)
        else:
            note_visit(row, link)
            response = keep_choice(request) or view(request, row, link, **kwargs)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return require_safe(answer)


def try_link(request: HttpRequest, text: str) -> tuple[AgentLink | None, int]:
    """Return (link, 0), (None, 0) for an unknown link, or (None, seconds to wait) after too many attempts."""
    name, address = public_part_in(text), address_of(request)
    # While a link's public part or an IP address has to wait, even a valid link is rejected.
    if wait := throttle.find_wait(name, address, kind=LINK_KIND):
        return None, wait
    row = open_link(text)
    # Requests that another site made the browser send are not counted: fifty images on a page would lock out
    # everyone behind the visitor's IP address.
    if row is not None or request.headers.get("Sec-Fetch-Site") == "cross-site":
        return row, 0
    return None, throttle.enter(name, address, kind=LINK_KIND)


def refuse_link(request: HttpRequest, wait: int = 0) -> HttpResponse:
    """Render the same page for every invalid link. It reveals neither the reason nor the agent."""
    status = 429 if wait else 404
    # -(-x // 60) rounds up to whole minutes.
    response = render(request, "agent_page/refused.html", {"wait": wait, "minutes": -(-wait // 60)}, status=status)
    if wait:
        response.headers["Retry-After"] = str(wait)
    return response


def keep_choice(request: HttpRequest) -> HttpResponse | None:
    """Store the language or theme from the query and redirect to the page. Return None if the query has neither."""
    language, theme = request.GET.get("language", ""), request.GET.get("theme", "")
    if not (language or theme):
        return None
    response = redirect(request.path)
    remember_language(response, language if language in dict(settings.LANGUAGES) else "")
    remember_theme(response, theme)
    return response
