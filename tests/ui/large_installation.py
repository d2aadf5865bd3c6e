"""`python -m tests.ui.large_installation`: add an extreme amount of data to an installation.

Names of 120 characters without a space, 30 providers, 100 model services, 40 task routes, 200 artifacts and 200
requests, in addition to the existing demo. The data directory is taken from the environment, as for `manage.py`.
"""

from __future__ import annotations

import os
from datetime import timedelta

from tests.ui.large import KEY_NAMES, WIDE, name_of

PROVIDERS, SERVICES, ROUTES, ARTIFACTS, REQUESTS, PEOPLE = 30, 100, 40, 200, 200, 20


def add_configuration() -> None:
    """Add providers, services, routes, aliases and agents as one revision; the first of each kind has the wide name."""
    from capabilities.acts import SYSTEM, AuditedAction
    from capabilities.core.vocabulary import Capabilities
    from routing_admin.configuration import rows
    from routing_admin.configuration.revisions import ledger
    from routing_admin.core.configuration import specs

    capability_sets = [
        Capabilities(("text",)),
        Capabilities(("text", "vision")),
        Capabilities(("text", "vision", "audio", "file")),
    ]
    keys = tuple(specs.KeySpec(specs.KeyKind.ENV, f"LLM_PROVIDER_X_API_KEY_{n + 2}", name=KEY_NAMES[n]) for n in (0, 1))
    providers = [
        specs.ProviderSpec(
            *(name_of("provider", n), f"https://{n}.example/v1", WIDE),
            display_name=WIDE * (n == 0),
            more_keys=keys * (n == 0),
        )
        for n in range(PROVIDERS)
    ]
    services = [
        specs.ServiceSpec(
            id=name_of("service", n),
            name=WIDE,
            provider=providers[n % PROVIDERS].name,
            model=name_of("model", n),
            capabilities=capability_sets[n % len(capability_sets)],
        )
        for n in range(SERVICES)
    ]
    chains = [[services[(n + step) % SERVICES] for step in range(5)] for n in range(ROUTES)]
    routes = [
        specs.RouteSpec(
            name_of("task", n), tuple(specs.CandidateSpec(service.provider, service.model) for service in chain)
        )
        for n, chain in enumerate(chains)
    ]
    aliases = [specs.AliasSpec(name_of("alias", n), services[n % SERVICES].id) for n in range(60)]
    agents = [specs.AgentSpec(name_of("agent", n), WIDE, service_id=services[n].id) for n in range(40)]
    with ledger.change(SYSTEM, AuditedAction("configuration.import", message=WIDE)):
        current = rows.read()
        rows.write(
            specs.Configuration(
                providers=(*current.providers, *providers),
                services=(*services, *current.services),
                routes=(*current.routes, *routes),
                aliases=(*current.aliases, *aliases),
                agents=(*agents, *current.agents),
            )
        )


def add_artifacts() -> None:
    """Add artifacts that share one file's bytes, and an artifact with a long and wide table."""
    from artifacts.library import store_bytes
    from artifacts.models import Artifact
    from capabilities.acts import SYSTEM

    artifact = Artifact.objects.first()
    assert artifact is not None
    values = {field.attname: getattr(artifact, field.attname) for field in Artifact._meta.concrete_fields}
    Artifact.objects.bulk_create(
        Artifact(**{**values, "id": f"{n:032x}", "filename": f"{name_of('file', n)}.txt"}) for n in range(ARTIFACTS)
    )
    row = ("1," + "名称," + WIDE + ",3.1415\n").encode()
    store_bytes(SYSTEM, row * 20_000, filename=f"{WIDE}.csv", declared="text/csv")


def add_requests() -> None:
    """Add requests of the last day with attempts: answered, answered by a fallback, and failed."""
    from django.utils import timezone

    from routing_admin.models import AttemptLog, RequestLog
    from routing_admin.request_log.usage_sums import add_usage

    now = timezone.now()
    for number in range(REQUESTS):
        failed, name = number % 5 == 0, f"{name_of('provider', number % 3)}/{name_of('model', number % 3)}"
        chip = {"name": name, "code": "503" if failed else "200", "tone": "bad" if failed else "ok"}
        row = RequestLog.objects.create(
            id="req_" + WIDE[:60] if number == 0 else f"req_f{number:023x}",
            started_at=now - timedelta(minutes=number),
            agent=name_of("agent", number % 3),
            surface="v1",
            asked_model=f"task:{name_of('task', number % 3)}",
            task_type=name_of("task", number % 3),
            outcome="all_providers_failed" if failed else "ok",
            status=502 if failed else 200,
            provider="" if failed else name_of("provider", number % 3),
            model="" if failed else name_of("model", number % 3),
            chain=[chip] * 3,
            fell_back=number % 3 == 0 and not failed,
            duration_ms=1234,
        )
        for position in range(3):
            AttemptLog.objects.create(
                request=row,
                position=position,
                provider=name_of("provider", number % 3),
                model=name_of("model", number % 3),
                outcome="http_503" if failed else "ok",
                status=503 if failed else 200,
                error=WIDE * failed,
                started_ms=position * 400,
                duration_ms=380,
                tries=[
                    {
                        "startedMs": position * 400 + n * 190,
                        "durationMs": 190,
                        "key": key,
                        "outcome": outcome,
                        "status": status,
                    }
                    for n, (key, outcome, status) in enumerate(
                        ((KEY_NAMES[0], "http_401", 401), (KEY_NAMES[1], "http_503" if failed else "ok", None))
                    )
                ],
                at=row.started_at,
            )
        priced = {"token_details": None, "prompt_tokens": 12_345, "completion_tokens": 678, "saved_nanos": 5_000}
        money = {"cost_nanos": 987_654_321_000, "currency": ("USD", "CNY")[number % 2]}
        add_usage([({**row.__dict__, **priced, **money}, ())])


def add_people() -> None:
    from django.contrib.auth.models import User

    from capabilities.acts import Actor, AuditedAction
    from routing_admin.configuration.audit import write_event

    for number in range(PEOPLE):
        User.objects.create(username=name_of("user", number), password="!", is_staff=bool(number % 2))
        name = name_of("user", number)
        write_event(Actor("person", name), AuditedAction("user.invite", "user", name))


def add_edition() -> None:
    from datetime import date

    from capabilities.core.providers.catalogue import default_catalogue
    from capabilities.core.providers.catalogue.refreshing import read_own_list
    from routing_admin.configuration.catalogue_versions import keep_edition

    entries = [
        {"id": name_of("model", number), "context_length": 1000, "capabilities": {"vision": True}}
        for number in range(300)
    ]
    keep_edition(read_own_list(WIDE, "openrouter", entries, default_catalogue().document, date(2026, 11, 22)))


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "routing_admin.settings")
    import django

    django.setup()
    for add in (add_configuration, add_artifacts, add_requests, add_people, add_edition):
        add()


if __name__ == "__main__":
    main()
