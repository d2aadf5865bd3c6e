"""What is there to be found beside pages and acts: the configuration in memory, and a few rows of what is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _

from artifacts.library.queries import find_artifacts_beginning
from capabilities.core.permissions import Right, UserRole, right_on_page
from capabilities.core.providers.presets import preset_for_endpoint
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.find.queries import find_keys, find_people, find_requests
from routing_admin.core.ranking import Findable, FoundKind
from routing_admin.request_log.search_words import quote

SHORTEST_ID = 3
"""Characters that are taken for the beginning of an id."""
KEY_CHARACTERS = 8
"""Of an agent's key no more than its public part is looked for, whatever was pasted."""

ICONS = {
    FoundKind.ROUTE: "route",
    FoundKind.PROVIDER: "server",
    FoundKind.SERVICE: "grid",
    FoundKind.AGENT: "agent",
    FoundKind.ALIAS: "link",
    FoundKind.KEY: "key",
    FoundKind.PERSON: "user",
    FoundKind.REQUEST: "list",
    FoundKind.ARTIFACT: "doc",
}


def things_for(role: UserRole, typed: str, state: Snapshot) -> Iterator[Findable]:
    """What may fit, of each kind whose page that role may see."""
    sources: dict[str, Any] = {
        "route": lambda: routes_of(state),
        "provider": lambda: providers_of(state),
        "service": lambda: services_of(state),
        "agent": lambda: (*agents_of(state), *keys_named(typed)),
        "user": lambda: people_named(typed),
        "request": lambda: requests_named(typed),
        "artifact": lambda: artifacts_named(typed),
    }
    for page, source in sources.items():
        if right_on_page(role, page) & Right.SEE:
            yield from source()


def thing(kind: FoundKind, label: str, url: str, names: Iterable[str], detail: str = "") -> Findable:
    """Something of the installation."""
    return Findable(kind, label, url, tuple(names), detail, ICONS[kind])


def routes_of(state: Snapshot) -> Iterator[Findable]:
    """Every task route and every other name of one."""
    for route in state.configuration.routes:
        url, names = reverse("route", args=[route.task_type]), (route.task_type, f"task:{route.task_type}")
        yield thing(FoundKind.ROUTE, route.task_type, url, names)
    for alias in state.configuration.aliases:
        yield thing(FoundKind.ALIAS, alias.name, reverse("routes"), (alias.name,), f"→ {alias.target}")


def providers_of(state: Snapshot) -> Iterator[Findable]:
    """Every provider, found by what its host is called in either language, too."""
    for provider in state.configuration.providers:
        preset = preset_for_endpoint(provider.endpoint)
        known = (preset.label_en, preset.label_zh) if preset else ()
        label = provider.display_name or provider.name
        names = (provider.name, label, *known, provider.endpoint)
        detail = "" if provider.name.casefold() == label.casefold() else provider.name
        yield thing(FoundKind.PROVIDER, label, reverse("provider", args=[provider.name]), names, detail)


def services_of(state: Snapshot) -> Iterator[Findable]:
    """Every model service, found by its model and provider."""
    for service in state.configuration.services:
        names = (service.id, service.name, service.model, f"{service.provider}/{service.model}")
        detail = f"{service.provider}/{service.model}"
        yield thing(FoundKind.SERVICE, service.id, reverse("service", args=[service.id]), names, detail)


def agents_of(state: Snapshot) -> Iterator[Findable]:
    """Every agent."""
    for agent in state.agents:
        yield thing(FoundKind.AGENT, agent.id, reverse("agent", args=[agent.id]), (agent.id, agent.name), agent.name)


def keys_named(typed: str) -> Iterator[Findable]:
    """Agents' keys by the beginning of what everybody may know of them, `ra_` and eight characters."""
    beginning = typed.removeprefix("ra_")[:KEY_CHARACTERS]
    if not _is_beginning(typed):
        return
    for key in find_keys(beginning):
        url, name = reverse("agent", args=[key.agent.agent_id]) + "#keys", f"ra_{key.public_id}"
        names = (typed, name, key.public_id)
        yield thing(FoundKind.KEY, f"{name}…", url, names, " · ".join(filter(None, (key.label, key.agent.agent_id))))


def people_named(typed: str) -> Iterator[Findable]:
    """Users by their names."""
    for user in find_people(typed):
        name = user.get_username()
        yield thing(FoundKind.PERSON, name, reverse("user", args=[user.pk]), (name,))


def requests_named(typed: str) -> Iterator[Findable]:
    """Logged requests by the beginning of their id."""
    for row in find_requests(typed) if _is_beginning(typed) else ():
        detail = " · ".join(filter(None, (row.task_type, row.agent, row.outcome)))
        yield thing(FoundKind.REQUEST, row.pk, reverse("request", args=[row.pk]), (row.pk,), detail)


def artifacts_named(typed: str) -> Iterator[Findable]:
    """Stored files by the beginning of their name or id."""
    for row in find_artifacts_beginning(typed):
        names = (row.filename, row.pk, row.ref)
        label = row.filename or row.ref
        yield thing(FoundKind.ARTIFACT, label, reverse("artifact", args=[row.pk]), names, row.ref)


def searches(typed: str, state: Snapshot) -> tuple[Findable, ...]:
    """Where else one can look: in the requests, where what was typed means something there, and in the files."""
    found = []
    if asked := requests_search(typed, state):
        label = _("Search requests for “%(words)s”") % {"words": asked}
        found.append(Findable(FoundKind.PAGE, label, f"{reverse('requests')}?{urlencode({'q': asked})}", ()))
    label = _("Search artifacts for “%(words)s”") % {"words": typed}
    found.append(Findable(FoundKind.PAGE, label, f"{reverse('artifacts')}?{urlencode({'q': typed})}", ()))
    return tuple(found)


def requests_search(typed: str, state: Snapshot) -> str:
    """How the search of requests asks for it: by the key whose name it is, else as an id; empty where it is neither."""
    configuration = state.configuration
    named = {
        "task": [route.task_type for route in configuration.routes],
        "provider": [provider.name for provider in configuration.providers],
        "agent": [agent.id for agent in state.agents],
        "model": [service.model for service in configuration.services],
    }
    for key, names in named.items():
        for name in names:
            if name.casefold() == typed.casefold():
                return f"{key}:{quote(name)}"
    return typed if _is_beginning(typed) or ":" in typed else ""


def _is_beginning(typed: str) -> bool:
    """Whether it may be the beginning of an id: one word, long enough to mean something."""
    return len(typed) >= SHORTEST_ID and not any(each.isspace() for each in typed)
