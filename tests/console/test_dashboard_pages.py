"""The dashboard: health and figures as text, the checklist, and removing the demo data with Undo."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from capabilities.actors import SYSTEM
from capabilities.core.services.agent_limits import Meter
from capabilities.models import Drift, Provider, Service
from routing_admin.configuration import snapshot
from routing_admin.console.base.tags.ui import exact
from routing_admin.console.dashboard import queries
from routing_admin.console.dashboard.notices import NoticeGroup, NoticeLine, list_notices
from routing_admin.console.dashboard.queries import LowBudget, QuotaUse, build_figures, percent_text
from routing_admin.console.dashboard.views import MAX_TILES, build_tiles
from routing_admin.console.people.actions import choose_password
from routing_admin.console.providers.queries import list_models, read_evidence
from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.core.configuration.specs import EMPTY, LabelBudgetSpec
from routing_admin.core.fallback.cooldown import LocalCooldowns
from routing_admin.models import AttemptLog, Candidate, Installation, RequestLog, TaskRoute
from routing_admin.platform.databases.lock_timeout import lock_timeout
from routing_admin.request_log import health
from routing_admin.request_log.health import Sample, judge, quantile
from tests.console.page import Page
from tests.console.visits import offered_undo
from tests.gateway.plane import unreadable_tables

NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)


def make_samples(*outcomes: str, ms: float = 100) -> list[Sample]:
    """Return samples of the dashboard's figures, one per minute, newest first."""
    return [Sample(NOW - timedelta(minutes=minutes), outcome, ms) for minutes, outcome in enumerate(outcomes)]


@pytest.mark.parametrize(
    ("outcomes", "ms", "status"),
    [
        ((), 100, "unknown"),
        (("ok",), 100, "ok"),
        (("ok", "http_500", "http_500"), 100, "ok"),
        (("http_500",), 100, "failing"),
        (("http_500", "http_503", "http_500", "ok"), 100, "failing"),
        (("connect_refused",), 100, "down"),
        (("read_timeout", "http_401"), 100, "down"),
        (("http_401", "http_500"), 100, "rejected"),
        (("http_429_quota",), 100, "rejected"),
        (("http_429",), 100, "failing"),
        (("http_500", "ok", "ok"), 100, "ok"),
        (("ok", "ok"), 12_000, "slow"),
    ],
)
def test_provider_health_is_derived_from_the_newest_calls(outcomes: tuple[str, ...], ms: float, status: str) -> None:
    assert judge(make_samples(*outcomes, ms=ms), NOW).status == status


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_quantile_is_an_observed_value_with_at_least_the_given_share_at_or_below(
    values: list[float], share: float
) -> None:
    result = quantile(sorted(values), share)
    assert result in values
    assert sum(value <= result for value in values) >= share * len(values) - 1e-9


@given(st.lists(st.sampled_from(["ok", "http_500"]), max_size=50))
def test_sparkline_contains_every_call_of_the_hour(outcomes: list[str]) -> None:
    assert sum(judge(make_samples(*outcomes), NOW).series) == len(outcomes)


pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def log_request(key: str, hours: float, outcome: str = "ok", **columns: Any) -> RequestLog:
    row = RequestLog.objects.create(
        id=key, started_at=timezone.now() - timedelta(hours=hours), surface="chat", outcome=outcome,
        **{"task_type": "planning", **columns},
    )  # fmt: skip
    AttemptLog.objects.create(
        request=row, position=0, provider="echo", outcome=outcome, at=row.started_at, duration_ms=5
    )
    return row


def test_requests_of_two_days_are_counted_per_hour(db: None) -> None:
    for number, hours in enumerate((0, 0, 3, 30, 60)):
        log_request(f"r{number}", hours, "http_500" if number == 2 else "ok", fell_back=number == 1)
    today, yesterday = health.two_days(timezone.now())
    assert (today.total, yesterday.total) == (3, 1)
    assert today.requests[-1] + today.requests[-2] == 2
    assert (sum(today.fell_back), sum(today.failed)) == (1, 1)
    assert round(today.share(today.failed) or 0) == 33


@pytest.mark.parametrize(
    ("outcome", "count"),
    [("all_providers_failed", 1), ("http_500", 1), ("stream_broken", 1), ("internal_error", 1), ("overloaded", 1),
     ("invalid_json", 0), ("model_not_found", 0), ("client_cancelled", 0), ("upstream_413", 0), ("would_drop", 0)],
)  # fmt: skip
def test_client_errors_do_not_count_as_failures(db: None, outcome: str, count: int) -> None:
    log_request("r1", 0, outcome)
    today, _yesterday = health.two_days(timezone.now())
    assert (today.total, sum(today.failed)) == (1, count)


def test_time_to_first_content_is_the_median_and_95th_percentile_of_the_day(db: None) -> None:
    assert health.first_content(timezone.now()) == health.FirstContent()
    for number, ms in enumerate((100, 200, 9000, None)):
        log_request(f"r{number}", 0, first_content_ms=ms)
    log_request("old", 30, first_content_ms=1)
    first = health.first_content(timezone.now())
    assert (first.p50, first.p95, max(first.series)) == (200, 9000, 200)
    assert "95% within 9.00 s" in [figure.count for figure in build_figures(health.Day(), health.Day(), first, NOW)]


def test_sparkline_of_a_figure_ends_with_the_last_complete_hour() -> None:
    """The figure includes the current hour. The sparkline does not, as an incomplete hour would look like a decline."""
    day = health.Day(requests=(5,) * 24 + (1,))
    figures = build_figures(day, health.Day(), health.FirstContent(), NOW)
    assert (figures[0].value, figures[0].series) == ("121", (5,) * 24)
    assert [len(figure.series) for figure in figures] == [24] * 4


@pytest.mark.parametrize(("share", "text"), [(None, "–"), (0, "0%"), (0.01, "<0.1%"), (4.321, "4.3%"), (100, "100.0%")])
def test_zero_requests_have_no_percentage(share: float | None, text: str) -> None:
    assert percent_text(share) == text


def test_dashboard_lists_the_worst_provider_first(db: None, demo: None) -> None:
    health_by_provider = {"echo": judge(make_samples("ok"), NOW), "gemini": judge(make_samples("http_500"), NOW)}
    Provider.objects.create(name="spare", endpoint="https://spare.example/v1", default_model="m", position=0)
    snapshot.refresh()
    tiles = build_tiles(snapshot.current(), replace(read_evidence(), health=health_by_provider))
    ranks = [tile.rank for tile in tiles]
    assert ranks == sorted(ranks)
    names = [tile.name for tile in tiles]
    assert names.index("openai") < names.index("echo") < names.index("spare")


def test_only_called_or_failing_providers_have_a_tile_if_there_are_many(admin: Client, demo: None) -> None:
    for number in range(MAX_TILES):
        Provider.objects.create(name=f"idle-{number}", endpoint="https://idle.example/v1", position=100 + number)
    snapshot.refresh()
    page = Page(admin.get("/"))
    assert page.shows("No provider was called in the last hour.")
    count = Provider.objects.count()
    assert page.link(f"All providers, {count} more")
    log_request("r1", 0)
    page = Page(admin.get("/"))
    assert page.control("provider-echo")
    assert page.control("provider-idle-1") is None
    assert page.link(f"All providers, {count - 1} more")


def test_provider_with_a_forbidden_address_is_not_shown_as_missing_a_key(demo: None, settings: Any) -> None:
    settings.ALLOWED_ORIGINS = ""
    Provider.objects.create(name="inner", endpoint="http://10.0.0.1/v1", default_model="m", key_source="none")
    snapshot.refresh()
    (tile,) = (tile for tile in build_tiles(snapshot.current(), read_evidence()) if tile.name == "inner")
    assert tile.state.name == "not_allowed"


def test_test_all_button_tests_enabled_providers_in_small_batches(admin: Client, demo: None) -> None:
    url, htmx = reverse("providers_test"), {"hx-request": "true"}
    count = Provider.objects.filter(enabled=True).count()
    assert f"0 of {count} tested" in Page(admin.post(url, headers=htmx)).text
    assert Page(admin.post(url, {"from": "0"}, headers=htmx)).control("tested-echo")
    last = Page(admin.post(url, {"from": str(count), "failed": ["openai"]}, headers=htmx))
    assert f"1 of {count} without an answer: openai" in last.text
    assert last.button("Test all")


@pytest.mark.parametrize("outcome", ["skipped_cooling", "client_cancelled", "http_400", "http_413", "http_400_content"])
def test_outcomes_not_caused_by_the_provider_do_not_affect_provider_health(db: None, outcome: str) -> None:
    log_request("r1", 0.1, outcome)
    assert health.provider_health(timezone.now()) == {}


def test_failures_of_unconfigured_models_do_not_affect_provider_health(db: None, demo: None) -> None:
    log_request("r1", 0.1, "http_404")
    models = list_models(snapshot.current())
    assert health.provider_health(timezone.now(), models) == {}
    AttemptLog.objects.update(model=Provider.objects.get(name="echo").default_model)
    assert health.provider_health(timezone.now(), models)["echo"].status == "failing"


def test_dashboard_shows_whether_every_route_can_answer(admin: Client, demo: None) -> None:
    page = Page(admin.get(reverse("dashboard")))
    assert page.shows("All 6 task routes are working. 2 of them skip candidates that cannot be called.")
    Provider.objects.filter(name="echo").update(enabled=False)
    snapshot.refresh()
    page = Page(admin.get(reverse("dashboard")))
    assert page.shows("6 of 6 task routes cannot answer")
    assert page.shows("has no key")


def test_routes_that_cannot_answer_are_grouped_into_one_row_with_causes(admin: Client, demo: None) -> None:
    echo = Provider.objects.get(name="echo")
    Provider.objects.filter(name="echo").update(enabled=False)
    for number in range(8):
        route = TaskRoute.objects.create(task_type=f"alone-{number}", position=100 + number)
        Candidate.objects.create(route=route, position=1, provider=echo)
    snapshot.refresh()
    page = Page(admin.get(reverse("dashboard")))
    links = [link for link in page.controls if "cause=" in (link.attributes.get("href") or "")]
    counts = {link.name.split(maxsplit=1)[1]: int(link.name.split()[0]) for link in links}
    assert counts == {"only disabled providers": 12, "several causes": 2}
    assert page.link("14 task routes cannot answer")
    assert page.link("and 9 more")
    for link in links:
        listed = Page(admin.get(link.attributes["href"]))
        assert len(listed_routes(listed)) == int(link.name.split()[0])


def listed_routes(page: Page) -> list[str]:
    return [row.name for row in page.controls if row.tag == "th" and row.attributes.get("scope") == "row"]


@pytest.mark.parametrize(("state", "count"), [("ready", 5), ("unable", 0), ("disabled", 1), ("", 6)])
def test_route_list_is_filtered_by_state(admin: Client, demo: None, state: str, count: int) -> None:
    TaskRoute.objects.filter(task_type="design").update(enabled=False)
    snapshot.refresh()
    page = Page(admin.get(reverse("routes"), {"state": state}))
    selected = [option.attributes["value"] for option in page.controls if "selected" in option.attributes]
    assert (len(listed_routes(page)), selected) == (count, [state] if state else [])


def test_empty_installation_shows_a_checklist_of_missing_steps(admin: Client) -> None:
    page = Page(admin.get(reverse("dashboard")))
    assert page.shows("No task route yet")
    assert page.shows("No providers yet")


@pytest.mark.parametrize(("number", "hidden"), [(0, 0), (5, 0), (6, 0), (7, 2)])
def test_notice_group_never_hides_a_single_line(number: int, hidden: int) -> None:
    """A line such as "and 1 more" would take as much space as the hidden line."""
    lines = [NoticeLine(f"route-{place}", "", "no key") for place in range(number)]
    group = NoticeGroup(tone="bad", icon="stop", sentence="", url="", lines=lines)
    assert (len(group.first_lines), group.more) == (number - hidden, hidden)


def test_first_request_and_password_change_complete_checklist_steps(admin: Client, demo: None) -> None:
    assert Page(admin.get(reverse("dashboard"))).shows("0 of 7 done")
    log_request("r1", 0.1)
    assert Page(admin.get(reverse("dashboard"))).shows("1 of 7 done")
    user = get_user_model().objects.get(username="admin")
    choose_password(SYSTEM, user, "another horse battery staple")
    admin.force_login(user)
    assert Page(admin.get(reverse("dashboard"))).shows("2 of 7 done")


def test_dashboard_refresh_returns_only_the_fragment(admin: Client, demo: None) -> None:
    part = Page(admin.get(reverse("dashboard"), headers={"HX-Request": "true", "HX-Target": "live"}))
    assert part.controls[0] is part.control("live")
    assert not part.is_document
    boosted = Page(admin.get(reverse("dashboard"), headers={"HX-Request": "true", "HX-Target": "main"}))
    assert boosted.is_document


def test_removing_the_demo_can_be_undone(admin: Client, demo: None) -> None:
    answer = admin.post(reverse("demo_remove"), follow=True)
    assert snapshot.current().configuration.routes == ()
    admin.post(reverse("undo", args=[offered_undo(admin, answer)]), {"next": "/"})
    assert len(snapshot.current().configuration.routes) == 6


def test_viewer_cannot_remove_the_demo(viewer: Client, demo: None) -> None:
    assert Page(viewer.get(reverse("dashboard"))).form(reverse("demo_remove")) is None
    assert viewer.post(reverse("demo_remove")).status_code == 403


def test_dashboard_query_count_is_the_same_for_three_and_thirty_requests(
    admin: Client, demo: None, django_assert_num_queries: Any
) -> None:
    """The page makes five queries to the log.

    They read hourly totals, times to first content, attempts, requests with a fallback or failure, and whether any
    request was answered.
    """
    for number in range(3):
        log_request(f"a{number}", 0.1, "http_500")
    admin.get(reverse("dashboard"))
    with django_assert_num_queries(5, using="logs"):
        admin.get(reverse("dashboard"))
    for number in range(27):
        log_request(f"b{number}", 0.1, "http_500")
    with django_assert_num_queries(5, using="logs"):
        admin.get(reverse("dashboard"))


@pytest.mark.django_db(databases=["default", "logs"], transaction=True)
@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        (
            "en",
            "Since {since} the configuration cannot be read from the database. Calls continue with revision {number};",
        ),
        ("zh-hans", "自 {since} 起无法从数据库读取配置。调用继续使用版本 {number}，之后的改动尚未生效。"),
    ],
)
def test_dashboard_shows_since_when_the_configuration_is_unreadable(
    admin: Client, demo: None, language: str, sentence: str
) -> None:
    number = snapshot.current().revision
    Installation.objects.update(version=F("version") + 1)
    with unreadable_tables("routing_admin_alias"):
        with lock_timeout(0.1):
            snapshot.look()
        since = snapshot.unread_since()
        assert since is not None
        page = Page(admin.get(reverse("dashboard"), headers={"accept-language": language}))
        assert page.shows(sentence.format(since=exact(since), number=number))
    snapshot.look()
    page = Page(admin.get(reverse("dashboard"), headers={"accept-language": language}))
    assert page.shows(sentence.split("{since}")[1].split("{number}")[0].strip()) is None


def test_low_budgets_are_shown_for_both_team_and_project_of_the_same_name(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets = tuple(LabelBudgetSpec(f"{kind}:atlas", {"tokensPerDay": 100}) for kind in ("team", "project"))
    uses = {("label:team=atlas", Meter.TOKENS_PER_DAY): 90, ("label:project=atlas", Meter.TOKENS_PER_DAY): 95}
    monkeypatch.setattr(queries, "find_uses", lambda _holders: uses)
    low = queries.list_low_budgets(replace(EMPTY, label_budgets=budgets))
    assert [(budget.label, budget.percent) for budget in low] == [("atlas", 95), ("atlas", 90)]


@pytest.mark.parametrize(
    ("percents", "sentence", "tone"),
    [
        ((100, 94, 91), "Budgets: 1 used up, 2 nearly used up", "bad"),
        ((130, 100), "2 budgets are used up", "bad"),
        ((94,), "1 budget is nearly used up", "warn"),
    ],
)
def test_used_up_and_nearly_used_up_budgets_are_counted_separately(
    percents: tuple[int, ...], sentence: str, tone: str
) -> None:
    (group,) = list_notices(
        alerts={},
        standings=(),
        budgets=[LowBudget("", "atlas", Meter.TOKENS_PER_DAY, percent, None) for percent in percents],
        refusals=(),
        quotas=(),
        cooldowns=LocalCooldowns(lambda: 0.0, lambda: 0.0),
        drifts=(),
    )
    assert (group.sentence, group.tone) == (sentence, tone)


def test_models_in_doubt_are_grouped_into_one_row(admin: Client, demo: None) -> None:
    services = list(Service.objects.select_related("provider").filter(service_id__in=("echo-vision", "vision-model")))
    drifts = [
        Drift.objects.create(
            provider=service.provider.name, model=service.model, capability="vision", kind="denied", at=timezone.now()
        )
        for service in services
    ]
    page = Page(admin.get(reverse("dashboard")))
    assert page.link("2 models do not read what they are declared to read")
    assert [button.name for button in page.controls if button.tag == "button"].count("Probe now") == 2
    drifts[0].delete()
    page = Page(admin.get(reverse("dashboard")))
    assert page.link("2 models do not read what they are declared to read") is None
    assert page.button("Probe now")


def test_problem_kinds_without_a_problem_have_no_row(db: None) -> None:
    groups = list_notices(
        alerts={AlertKind.KEY_REFUSED: 3, AlertKind.BUDGET: 1, AlertKind.DISK: 0},
        standings=(),
        budgets=(),
        refusals=(),
        quotas=(QuotaUse("", 9, 10),),
        cooldowns=LocalCooldowns(lambda: 0.0, lambda: 0.0),
        drifts=(),
    )
    assert [(group.sentence, len(group.causes)) for group in groups] == [
        ("4 active alerts", 2),
        ("1 storage quota is nearly used up", 0),
    ]


def test_problems_with_a_separate_row_are_not_counted_among_the_alerts() -> None:
    groups = list_notices(
        alerts={AlertKind.BUDGET: 1, AlertKind.RETIRED_MODEL: 2},
        standings=(),
        budgets=[LowBudget("", "atlas", Meter.TOKENS_PER_DAY, 94, None)],
        refusals=(),
        quotas=(),
        cooldowns=LocalCooldowns(lambda: 0.0, lambda: 0.0),
        drifts=(),
    )
    assert [group.sentence for group in groups] == ["1 budget is nearly used up", "2 other alerts"]


def test_three_problems_are_shown_and_further_problems_are_collapsed() -> None:
    groups = [
        list_notices(
            alerts={},
            standings=(),
            budgets=[LowBudget("", "atlas", Meter.TOKENS_PER_DAY, 94, None)] * count,
            refusals=(),
            quotas=(),
            cooldowns=LocalCooldowns(lambda: 0.0, lambda: 0.0),
            drifts=(),
        )[0]
        for count in (2, 3, 4)
    ]
    assert [group.are_few for group in groups] == [True, True, False]
