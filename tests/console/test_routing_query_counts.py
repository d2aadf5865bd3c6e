"""Query counts, for each database, of the pages about routes, requests, history, settings and users.

Two queries to the database `default` read the session and the user. The others are in the `queries.py` of the console's
folders, and in `request_log`. The configuration in use is in memory and needs no query.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from capabilities.actors import Actor, AuditedAction
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.models import CatalogueEdition, Provider
from routing_admin.configuration import exports
from routing_admin.configuration.audit import write_event
from routing_admin.configuration.catalogue_versions import store_catalogue_version
from routing_admin.console.people.actions import issue_token
from routing_admin.core.files.importing import FileFormat
from routing_admin.models import Alias, AttemptLog, Candidate, Language, RequestLog, Revision, TaskRoute
from tests.console.visits import count_queries, query_counts
from tests.engines.databases import is_postgresql

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

QUERIES: dict[str, tuple[int, int]] = {
    "/": (6, 5),
    "/find/": (3, 0),
    "/find/?q=echo": (7, 1),
    "/find/?q=req_6741": (6, 1),
    "/requests/": (3, 6),
    "/requests/?q=status:error+provider:echo": (3, 5),
    "/volume/requests/": (3, 3),
    "/volume/requests/?q=provider:echo": (3, 5),
    "/requests/r0/": (3, 2),
    "/routes/": (4, 1),
    "/aliases/": (3, 0),
    "/routes/design/": (10, 1),
    "/routes/new/": (5, 0),
    "/simulate/": (4, 0),
    "/simulate/?request=r0": (4, 2),
    "/config/": (3, 0),
    "/history/": (5, 0),
    "/history/{first}/": (9, 1),
    "/history/{first}/?effect": (8, 1),
    "/history/{first}/restore/": (5, 0),
    "/history/compare/?a=0&b={first}": (6, 0),
    "/history/audit/": (5, 0),
    "/matrix/catalogue/": (3, 0),
    "/matrix/catalogue/{edition}/": (6, 0),
    "/usage/": (3, 2),
    "/usage/budgets/": (4, 0),
    "/settings/": (5 + is_postgresql(), 0),  # On PostgreSQL, reading the size of the database takes a query.
    "/alerts/": (5, 0),
    "/docs/": (3, 0),
    "/docs/runbook/disk-full/": (3, 0),
    "/drill/": (2, 0),
    "/providers/echo/drill/": (5, 1),
    "/users/": (5, 0),
    "/users/{user}/": (7, 0),
    "/password/": (5, 0),
    "/tokens/": (4, 0),
}
"""For each page, how many queries it makes to the main database and to the log."""


@pytest.fixture
def admin(demo: None, admin: Client) -> Client:
    add_requests(1)
    store_catalogue_version(default_catalogue().document)
    return admin


def add_requests(count: int) -> None:
    """Create failed requests that began now, each with two attempts. The first one is `r0`."""
    now = timezone.now()
    for number in range(count):
        values = {"started_at": now, "surface": "v1", "outcome": "http_500", "task_type": "design", "fell_back": True}
        row, _ = RequestLog.objects.update_or_create(id=f"r{number}", defaults=values)
        add_attempts(row, 2)


def add_attempts(row: RequestLog, count: int) -> None:
    for position in range(count):
        values = {
            "provider": "echo",
            "model": f"m{position}",
            "outcome": "http_500",
            "status": 500,
            "at": row.started_at,
        }
        AttemptLog.objects.update_or_create(request=row, position=position, defaults=values)


def add_everything() -> None:
    """Create thirty more rows of each kind, related to the rows whose pages are tested."""
    echo, first = Provider.objects.get(name="echo"), Revision.objects.get(number=first_revision())
    design = TaskRoute.objects.get(task_type="design")
    for number in range(30):
        route = TaskRoute.objects.create(task_type=f"t{number}", position=100 + number)
        Candidate.objects.create(route=route, position=1, provider=echo)
        Candidate.objects.create(route=design, position=4 + number, provider=echo, model=f"m{number}")
        Alias.objects.create(name=f"alias{number}", target="task:design")
        Language.objects.create(code=f"x-{number}", directive="x")
        User.objects.create(username=f"user{number}", password="!", is_staff=bool(number % 2))
        issue_token(Actor("person", "ada"), User.objects.get(username="admin"), f"token{number}", ["routes:read"])
        values = {"actor_kind": "person", "actor": "ada", "changes": first.changes, "snapshot": first.snapshot}
        Revision.objects.create(number=first.number + 1 + number, message=f"change {number}", sha256="x", **values)
        write_event(Actor("person", "ada"), AuditedAction("user.invite", "user", f"user{number}"))
        write_event(Actor("person", "ada"), AuditedAction("provider.change", revision=first.number))
    add_requests(30)
    add_attempts(RequestLog.objects.get(pk="r0"), 30)


def first_revision() -> int:
    """Return the number of the demo's revision, which depends on how many revisions earlier tests made."""
    return int(Revision.objects.order_by("number").values_list("number", flat=True)[0])


def edition() -> int:
    return int(CatalogueEdition.objects.values_list("pk", flat=True)[0])


def all_query_counts(client: Client) -> dict[str, tuple[int, int]]:
    names = {"user": User.objects.get(username="admin").pk, "first": first_revision(), "edition": edition()}
    return {address: query_counts(client, address.format(**names)) for address in QUERIES}


def test_query_counts_of_pages_do_not_grow_with_the_data(admin: Client) -> None:
    """With few rows and with many, each page makes as many queries to each database as the table `QUERIES` says."""
    assert all_query_counts(admin) == QUERIES
    add_everything()
    assert all_query_counts(admin) == QUERIES


def test_query_count_of_simulation_and_preview_does_not_grow_with_the_data(admin: Client) -> None:
    walk_form = {"act": "simulate", "task": "design", "sim-message": "Hello"}
    preview = {"text": exports.export(FileFormat.ROUTING).text, "name": "llm-routing.json"}
    counts = count_queries(admin, "/simulate/", post=walk_form), count_queries(admin, "/config/import/", post=preview)
    add_everything()
    assert (
        count_queries(admin, "/simulate/", post=walk_form),
        count_queries(admin, "/config/import/", post=preview),
    ) == counts
