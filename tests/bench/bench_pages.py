"""`python -m tests.bench.bench_pages [--rows N]`: CPU time per page in a large installation.

It has 200 model services of 20 providers, 100 task routes, 10,000 artifacts and a million logged requests in a
temporary data directory, or in the empty PostgreSQL database that DATABASE_URL names. Every page in the navigation and
some others are requested through all middleware. Other threads' CPU time is included.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.bench.table import median, milliseconds, p95, show

PROVIDERS, MODELS, ROUTES, ARTIFACTS, ROWS = 20, 10, 100, 10_000, 1_000_000
ROUNDS = 15
WANTED, WANTED_OF_A_FILTER = 30, 50
"""Goals in CPU milliseconds per page. The second goal applies to filtered request logs and to usage totals."""

FILTERS = (
    *("status:error", "status:fallback", "status:429", "status:201", "status:no_such_outcome"),
    *("task:task5", "task:task5 since:1h", "agent:agent1", "surface:none", "model:model3", "req_0"),
    *("provider:provider3", "provider:provider3 task:task5", "provider:provider3 model:model4"),
)
"""Request log searches with many, few and no results."""

FAILS_EVERY, FALLS_BACK_EVERY = 23, 11
FAILED, SECOND = f"i % {FAILS_EVERY} = 0", f"i % {FALLS_BACK_EVERY} = 0"
MONTH = 30 * 86_400


def main(rows: int = ROWS) -> None:
    with tempfile.TemporaryDirectory(prefix="routing-admin-bench-") as folder:
        begin(Path(folder))
        started = time.perf_counter()
        fill(rows)
        print(f"{rows:,} requests, {ARTIFACTS:,} artifacts: filled in {time.perf_counter() - started:.0f} s")
        client = administrator()
        table = [line for name, url in pages() if (line := timed(client, name, url))]
        heads = ["page", "cpu ms, median", "cpu ms, p95", "wanted ≤", "", "ms, median", "queries", "kB"]
        show("The processor's time per page", heads, table)


def begin(folder: Path) -> None:
    for name in [name for name in os.environ if name.startswith(("ROUTING_ADMIN_", "LLM_"))]:
        del os.environ[name]
    os.environ |= {"ROUTING_ADMIN_DATA_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "routing_admin.settings"}
    import django

    django.setup()
    warnings.filterwarnings("ignore", "No directory at")
    from django.core.management import call_command

    with open(os.devnull, "w") as nowhere:
        call_command("bootstrap", stdout=nowhere)


def fill(rows: int) -> None:
    from django.db import connections
    from django.utils import timezone

    from routing_admin.platform.databases import router
    from routing_admin.platform.databases.postgresql.partitions import make_days

    configuration()
    artifacts()
    for days in range(32):
        make_days(timezone.now() - timedelta(days=days))
    with connections[router.LOGS].cursor() as cursor:
        for table in (requests, attempts):
            table(cursor, rows)
        sums(cursor)
        cursor.execute("ANALYZE")


def configuration() -> None:
    from capabilities.actors import SYSTEM, AuditedAction
    from capabilities.core.vocabulary import Capabilities
    from routing_admin.configuration import rows
    from routing_admin.configuration.revisions import ledger
    from routing_admin.core.configuration.specs import CandidateSpec, ProviderSpec, RouteSpec, ServiceSpec

    with ledger.change(SYSTEM, AuditedAction("bench", message="bench")):
        current = rows.read()
        names = [f"provider{n}" for n in range(PROVIDERS)]
        providers = [ProviderSpec(name, f"https://{name}.example/v1/chat/completions", "model0") for name in names]
        able = (Capabilities(("text",)), Capabilities(("text", "vision")), Capabilities(("text", "vision", "file")))
        services = [
            ServiceSpec(
                id=f"{name}-model{n}",
                name=f"Model {n} of {name}",
                provider=name,
                model=f"model{n}",
                capabilities=able[n % len(able)],
            )
            for name in names
            for n in range(MODELS)
        ]
        routes = [
            RouteSpec(f"task{n}", tuple(CandidateSpec(names[(n + k) % PROVIDERS], f"model{k}") for k in range(4)))
            for n in range(ROUTES - len(current.routes))
        ]
        rows.write(
            type(current)(
                providers=(*current.providers, *providers),
                services=(*current.services, *services),
                routes=(*current.routes, *routes),
                agents=current.agents,
            )
        )


def artifacts() -> None:
    from django.utils import timezone

    from artifacts.models import Artifact

    template = Artifact.objects.first()
    assert template is not None
    now = timezone.now()
    values = {field.attname: getattr(template, field.attname) for field in Artifact._meta.concrete_fields}
    Artifact.objects.bulk_create(
        [
            Artifact(**{**values, "id": f"{n:032x}", "filename": f"{n}.txt", "created_at": now - timedelta(minutes=n)})
            for n in range(ARTIFACTS)
        ],
        batch_size=500,
    )


def large_text() -> str:
    from artifacts.library import store_bytes
    from capabilities.actors import SYSTEM

    line = "1,名称,some words of a table,3.1415,2026-11-22\n".encode()
    return str(store_bytes(SYSTEM, line * (8_000_000 // len(line)), filename="large.csv", declared="text/csv").pk)


def on_postgresql() -> bool:
    return os.environ.get("DATABASE_URL", "").startswith("postgres")


def request_id() -> str:
    return "'req_' || lpad(to_hex(i), 24, '0')" if on_postgresql() else "printf('req_%024x', i)"


def moment(rows: int) -> str:
    """Return an SQL expression for the time of row `i` in Django's format, spread over the last thirty days."""
    if on_postgresql():
        return f"now() - (({rows} - i) * {MONTH}.0 / {rows}) * interval '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f000', 'now', '-' || (({rows} - i) * {MONTH}.0 / {rows}) || ' seconds')"


def chain(*codes: str) -> str:
    """Return, as an SQL literal, the status chips that the request list shows for a row."""
    tones = {"200": "ok", "429": "warn", "503": "bad"}
    chips = [
        {"name": f"provider{position}/model{position}", "code": code, "tone": tones[code]}
        for position, code in enumerate(codes)
    ]
    return f"'{json.dumps(chips)}'" + ("::jsonb" if on_postgresql() else "")


def requests(cursor: Any, rows: int) -> None:
    from routing_admin.models import RequestLog

    columns = {
        "id": request_id(),
        "started_at": moment(rows),
        "agent": "'agent' || (i % 7)",
        "key": "'abcdef01'",
        "surface": "'chat'",
        "asked_model": "'task:task' || (i % 90)",
        "task_type": "'task' || (i % 90)",
        "outcome": f"CASE WHEN {FAILED} THEN 'all_providers_failed' ELSE 'ok' END",
        "ending": f"CASE WHEN {FAILED} THEN 'failed' ELSE 'answered' END",
        "status": f"CASE WHEN {FAILED} THEN 502 ELSE 200 END",
        "provider": f"'provider' || (i % {PROVIDERS})",
        "model": f"'model' || (i % {MODELS})",
        "chain": f"CASE WHEN {FAILED} THEN {chain('503', '503')} WHEN {SECOND} THEN {chain('429', '200')} "
        f"ELSE {chain('200')} END",
        "fell_back": f"{SECOND} AND NOT {FAILED}",
        "duration_ms": "200 + i % 1700",
        "first_content_ms": "90 + i % 600",
        "prompt_tokens": "i % 4000",
        "completion_tokens": "i % 900",
        "adaptation": "CASE WHEN i % 5 = 0 THEN 'image=described' ELSE '' END",
    }
    insert(cursor, RequestLog, columns, rows)


def attempts(cursor: Any, rows: int) -> None:
    from routing_admin.models import AttemptLog

    columns = {
        "request": request_id(),
        "position": "0",
        "provider": f"'provider' || (i % {PROVIDERS})",
        "model": f"'model' || (i % {MODELS})",
        "outcome": f"CASE WHEN {FAILED} THEN 'overloaded' WHEN {SECOND} THEN 'rate_limit' ELSE 'ok' END",
        "status": f"CASE WHEN {FAILED} THEN 503 WHEN {SECOND} THEN 429 ELSE 200 END",
        "duration_ms": "180 + i % 1500",
        "first_content_ms": "90 + i % 600",
        "at": moment(rows),
    }
    insert(cursor, AttemptLog, columns, rows)
    second = {
        **columns,
        "position": "1",
        "outcome": f"CASE WHEN {FAILED} THEN 'overloaded' ELSE 'ok' END",
        "status": "200",
    }
    insert(cursor, AttemptLog, second, rows, where=f"({FAILED}) OR ({SECOND})")


SPANS = (
    ("d", "strftime('%Y-%m-%d 00:00:00', started_at)", "datetime('now', '-40 days')"),
    ("h", "strftime('%Y-%m-%d %H:00:00', started_at)", "datetime('now', '-7 days')"),
)
SPANS_ON_POSTGRESQL = (
    ("d", "date_trunc('day', started_at)", "now() - interval '40 days'"),
    ("h", "date_trunc('hour', started_at)", "now() - interval '7 days'"),
)
"""For each kind of roll-up: the period's letter, SQL for the start of a request's period, and the earliest time."""


def sums(cursor: Any) -> None:
    """Insert daily roll-ups for a month and hourly ones for a week. Half of the requests have a price."""
    names = "agent, task_type, provider, model"
    counted = (
        "COUNT(*), COUNT(*) FILTER (WHERE outcome != 'ok'), COUNT(*) FILTER (WHERE fell_back), 0, "
        "SUM(prompt_tokens), SUM(completion_tokens), 0, 0"
    )
    spans = SPANS_ON_POSTGRESQL if on_postgresql() else SPANS
    for span, start, since in spans:
        cursor.execute(
            "INSERT INTO routing_admin_usagesum (span, start, agent, task_type, provider, model, team, project, "
            "end_user, currency, requests, "
            "failures, fallbacks, unpriced, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, "
            "cost_nanos, saved_nanos, fallback_nanos) "
            f"SELECT '{span}', {start} AS start, {names}, '', '', '', "
            "CASE WHEN provider < 'provider2' THEN 'USD' ELSE 'CNY' END AS currency, "
            f"{counted}, SUM(prompt_tokens) * 2500, 0, 0 FROM routing_admin_requestlog "
            f"WHERE started_at > {since} AND provider != '' GROUP BY {start}, {names}"
        )


def insert(cursor: Any, model: Any, values: Mapping[str, str], rows: int, where: str = "TRUE") -> None:
    """Insert all rows in one statement. Columns that are not given get their default."""
    columns: dict[str, str] = {}
    for field in model._meta.concrete_fields:
        if field.name in values:
            columns[field.column] = values[field.name]
        elif not field.primary_key:
            columns[field.column] = literal(field)
    cursor.execute(
        f"INSERT INTO {model._meta.db_table} ({', '.join(columns)}) "
        f"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) "
        f"SELECT {', '.join(columns.values())} FROM n WHERE {where}"
    )


def literal(field: Any) -> str:
    value = field.get_default()
    if value is None:
        return "NULL" if field.null else "''"
    if isinstance(value, bool | int | float):
        return str(value).upper()
    return "'[]'" if isinstance(value, list) else "'{}'" if isinstance(value, dict) else f"'{value}'"


def administrator() -> Any:
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    settings.ALLOWED_HOSTS = ["testserver"]
    client = Client()
    client.force_login(User.objects.filter(is_staff=True).first())
    return client


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and URL of each page in the navigation and of other frequently used pages."""
    from django.urls import NoReverseMatch, reverse

    from artifacts.models import Artifact
    from routing_admin.console.base.context import NAVIGATION
    from routing_admin.models import RequestLog

    artifact, request = Artifact.objects.first(), RequestLog.objects.first()
    addresses: list[tuple[str, list[Any]]] = [
        *((page.name, []) for _, nav_places in NAVIGATION for page in nav_places),
        ("services", []),
        ("users", []),
        ("audit", []),
        ("route", ["task0"]),
        ("provider", ["provider0"]),
        ("service", ["provider0-model0"]),
        ("agent", ["text-agent"]),
        ("artifact", [artifact.pk if artifact else ""]),
        ("artifact", [large_text()]),
        ("request", [request.pk if request else ""]),
    ]
    for name, arguments in addresses:
        try:
            yield name, reverse(name, args=arguments)
        except NoReverseMatch:
            print(f"there is no page {name}", file=sys.stderr)
    yield from ((f"usage, by {by}", f"{reverse('usage')}?by={by}") for by in ("agent", "route", "model", "day"))
    yield "usage, a day", f"{reverse('usage')}?days=1"
    yield from ((f"requests, {query}", f"{reverse('requests')}?q={query}") for query in FILTERS)


def timed(client: Any, name: str, url: str) -> list[object] | None:
    """Measure a page and return its table row. If the page fails, print a message to stderr and return None."""
    from django.db import connections
    from django.test.utils import CaptureQueriesContext

    with (
        CaptureQueriesContext(connections["default"]) as main_queries,
        CaptureQueriesContext(connections["logs"]) as log_queries,
    ):
        answer = client.get(url)
    queries = len(main_queries) + len(log_queries)
    if answer.status_code != 200:
        print(f"{name}: {answer.status_code} at {url}", file=sys.stderr)
        return None
    cpu_times = milliseconds(lambda: client.get(url), ROUNDS, clock=time.process_time)
    goal = WANTED_OF_A_FILTER if name.startswith(("requests,", "usage")) else WANTED
    exceeded = "over" if median(cpu_times) > goal else ""
    waited = milliseconds(lambda: client.get(url), ROUNDS)
    return [
        name,
        median(cpu_times),
        p95(cpu_times),
        goal,
        exceeded,
        median(waited),
        queries,
        len(answer.content) / 1000,
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pages", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of the request log (default {ROWS:,})")
    main(parser.parse_args().rows)
