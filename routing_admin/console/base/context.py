"""Context processor for all pages: the user, the user's rights, and the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy

from capabilities.access import can_edit, may, role_for
from capabilities.core.permissions import PagePart, UserRole, can_change
from routing_admin.configuration import snapshot
from routing_admin.console.alerts.queries import count_open
from routing_admin.console.drills.queries import banner_context

THEME_COOKIE = "theme"
THEMES = ("auto", "light", "dark")
USER_PAGES = ("user", "user_invite", "user_role", "user_active", "user_link", "tokens", "token_new")


@dataclass(frozen=True, slots=True)
class NavigationEntry:
    """A page in the navigation: its URL name, label and icon, and the key that opens the page if pressed after `g`.

    `within` lists the URL names of pages below this page.
    """

    name: str
    label: Any
    icon: str
    key: str = ""
    short: Any = ""
    quick: bool = False
    within: tuple[str, ...] = ()
    for_administrators: bool = False


NAVIGATION: tuple[tuple[Any, tuple[NavigationEntry, ...]], ...] = (
    (
        "",
        (
            NavigationEntry("dashboard", gettext_lazy("Dashboard"), "home", "d", quick=True),
            NavigationEntry(
                "requests", gettext_lazy("Requests"), "list", "l", quick=True, within=("request", "requests_volume")
            ),
            NavigationEntry("usage", gettext_lazy("Usage"), "chart", "b", within=("budgets",)),
            NavigationEntry("alerts", gettext_lazy("Alerts"), "warn", "w"),
        ),
    ),
    (
        gettext_lazy("Routing"),
        (
            NavigationEntry(
                "routes",
                gettext_lazy("Task routes"),
                "route",
                "r",
                gettext_lazy("Routes"),
                True,
                ("route", "route_new", "alias"),
            ),
            NavigationEntry("simulate", gettext_lazy("Simulate"), "play", "t"),
            NavigationEntry(
                "matrix",
                gettext_lazy("Capability matrix"),
                "grid",
                "m",
                within=("services", "service", "service_new", "catalogue", "catalogue_edition"),
            ),
            NavigationEntry(
                "providers",
                gettext_lazy("Providers"),
                "server",
                "p",
                within=("provider", "provider_new", "provider_models", "drill"),
            ),
        ),
    ),
    (
        gettext_lazy("Agents"),
        (
            NavigationEntry("agents", gettext_lazy("Agents and keys"), "agent", "a", within=("agent", "agent_new")),
            NavigationEntry(
                "artifacts", gettext_lazy("Artifacts"), "doc", "f", quick=True, within=("artifact", "artifact_compare")
            ),
        ),
    ),
    (
        gettext_lazy("Configuration"),
        (
            NavigationEntry("config", gettext_lazy("Import, export"), "swapbox", "c", within=("config_import",)),
            NavigationEntry(
                "history", gettext_lazy("History"), "history", "h", within=("revision", "restore", "compare", "audit")
            ),
            NavigationEntry("users", gettext_lazy("Users"), "user", "u", within=USER_PAGES, for_administrators=True),
            NavigationEntry("settings", gettext_lazy("Settings"), "gear", "s", within=("password_change",)),
            NavigationEntry(
                "documents", gettext_lazy("Documentation"), "book", "o", within=("document", "openapi-view")
            ),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class PageRights:
    """Maps each view's URL name to whether the user's role may post to that view.

    Templates read, for example, `can.key_issue`.
    """

    role: UserRole

    def __getitem__(self, name: str) -> bool:
        return can_change(self.role, name)


def page(request: HttpRequest) -> dict[str, Any]:
    """Return the variables for every template. Anonymous visitors get none that describe the installation."""
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    variables = {
        "theme": theme if theme in THEMES else "auto",
        "public_url": settings.PUBLIC_URL,
        "frame": "includes/plain.html",
        "error_frame": "includes/gate.html",
    }
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return variables
    rights = {part.value: may(user, part) for part in PagePart}
    return {
        **variables,
        "frame": "base.html",
        "error_frame": "base.html",
        "own_role": role_for(user),
        "can_edit": can_edit(request),
        "can": PageRights(role_for(user)),
        "may": rights,
        # This value is lazy, because responses without the navigation do not need it.
        "nav": SimpleLazyObject(lambda: navigation(request)),
        **banner_context(),
    }


def navigation(request: HttpRequest, alerts: int | None = None) -> list[dict[str, Any]]:
    """Return the groups of the navigation, with the current page marked and a count next to some entries.

    `alerts` is the number of open alerts if the page has already counted them.
    """
    current = request.resolver_match.url_name if request.resolver_match else None
    configuration = snapshot.current().configuration
    counts: dict[str, int | None] = {
        "routes": len(configuration.routes),
        "matrix": len(configuration.services),
        "providers": len(configuration.providers),
        "agents": len(snapshot.current().agents),
        "alerts": (count_open().waiting if alerts is None else alerts) or None,
    }
    groups, is_administrator = [], role_for(request.user) is UserRole.ADMINISTRATOR
    for label, entries in NAVIGATION:
        items = [
            build_item(entry, current, counts) for entry in entries if is_administrator or not entry.for_administrators
        ]
        groups.append({"label": label, "items": [link for link in items if link["url"]]})
    return groups


def find_url(page: str, *arguments: str) -> str:
    """Return a page's URL, or an empty string if there is no such page or its URL does not accept the arguments."""
    try:
        return reverse(page, args=arguments)
    except NoReverseMatch:
        return ""


def build_item(entry: NavigationEntry, current: str | None, counts: dict[str, int | None]) -> dict[str, Any]:
    return {
        "url": find_url(entry.name),  # The URL of a missing page is empty, so that `navigation` omits the page.
        "label": entry.label,
        "short": entry.short,
        "icon": entry.icon,
        "key": entry.key,
        "quick": entry.quick,
        "urgent": entry.name == "alerts",
        "count": counts.get(entry.name),
        "current": current == entry.name or current in entry.within,
    }
