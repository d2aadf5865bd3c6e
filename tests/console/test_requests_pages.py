"""The request log: search, keyset pages, and the page of one request."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.obstacles import SENTENCES, ReasonCode, make_reason
from capabilities.core.translatable import encode_text
from capabilities.core.wire import Fault
from capabilities.models import Agent
from routing_admin.console.requests.advice import ADVICE
from routing_admin.console.requests.story import (
    build_steps,
    build_story,
    build_tracks,
    color_chips,
    explain_outcome,
    fold_skips,
    worst_badge,
)
from routing_admin.core.fallback.chain import CANCELLED, SkipReason
from routing_admin.core.fallback.remedies import Remedy
from routing_admin.core.fallback.table import CALLERS_FAULTS, TABLE
from routing_admin.models import AttemptLog, RequestLog
from routing_admin.request_log import search
from routing_admin.request_log.entries import requested_target
from routing_admin.request_log.search import MAX_RARE_ROWS, PAGE, find, suggest
from routing_admin.request_log.search_words import KEYS, Search, moment, parse
from routing_admin.request_log.sentences import render_reason
from tests.cast import create_key
from tests.console.page import Page

CANNOT_SEE = make_reason(ReasonCode.NO_CAPABILITY, capability="vision").sentence()
FITS = make_reason(ReasonCode.FITS, capability="vision", mime_type="image/png").sentence()
NOW = datetime(2026, 11, 20, 14, 0, tzinfo=UTC)
VALUES = st.text("abcdefghijklmnopqrstuvwxyz0123456789/-_. 路由", min_size=1).map(str.strip).filter(bool)


@given(st.dictionaries(st.sampled_from(["task", "provider", "model", "agent"]), VALUES))
def test_search_text_round_trips_through_the_parser(terms: dict[str, str]) -> None:
    search = Search(tuple(terms.items()))
    assert parse(search.to_text(), NOW) == search


@given(st.text())
def test_search_parser_accepts_any_query(query: str) -> None:
    search = parse(query, NOW)
    assert {key for key, _ in search.values} <= set(KEYS)


@pytest.mark.parametrize(
    ("query", "problem"),
    [("color:red", "color"), ("since:soon", "soon"), ("status:$$", "$$"), ("task:", "task")],
)
def test_search_parser_reports_invalid_terms(query: str, problem: str) -> None:
    search = parse(f"{query} agent:a", NOW)
    assert problem in search.problems[0]
    assert search.values == (("agent", "a"),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("2d", NOW - timedelta(days=2)),
        ("2026-11-19T10:00:00+00:00", datetime(2026, 11, 19, 10, tzinfo=UTC)),
        ("never", None),
        ("999999w", None),
    ],
)
def test_search_times_are_relative_or_dates(text: str, expected: datetime | None) -> None:
    """`1h` means one hour ago, and a date means that date. Any other text gives None."""
    assert moment(text, NOW) == expected


def log_request(key: str, minutes: float = 1, **columns: Any) -> RequestLog:
    chain = columns.pop("chain", [{"name": "echo", "code": "200", "tone": "ok"}])
    return RequestLog.objects.create(
        id=key,
        started_at=timezone.now() - timedelta(minutes=minutes),
        **{"surface": "chat", "outcome": "ok", "status": 200, "task_type": "planning", "chain": chain, **columns},
    )


def add_attempt(row: RequestLog, position: int, outcome: str, **columns: Any) -> AttemptLog:
    return AttemptLog.objects.create(
        request=row, position=position, at=row.started_at, outcome=outcome, **{"provider": "openai", **columns}
    )


def log_design_request() -> RequestLog:
    """Log a request: a 429, then a 503, then an answer from a model that received only a description of the image."""
    row = log_request(
        "req_design", task_type="design", provider="deepseek", model="deepseek-chat", fell_back=True,
        adaptation="image=described", duration_ms=8420, first_content_ms=3800,
        chain=[{"name": "qwen", "code": "429", "tone": "warn"}, {"name": "openai", "code": "503", "tone": "danger"},
               {"name": "deepseek", "code": "200", "tone": "ok"}],
    )  # fmt: skip
    described = {"kind": "image", "filename": "shot.png", "artifactId": "", "outcome": "described",
            "shown": "described", "reason": "no_capability", "sentence": encode_text(CANNOT_SEE)}  # fmt: skip
    native = {**described, "outcome": "native", "shown": "as_is", "reason": "fits", "sentence": encode_text(FITS)}
    tries = [{"startedMs": 0, "durationMs": 210, "outcome": "http_429", "status": 429},
             {"startedMs": 410, "durationMs": 190, "outcome": "http_429", "status": 429}]  # fmt: skip
    add_attempt(row, 0, "http_429", provider="qwen", model="qwen-vl", status=429, retry_attempts=1, tries=tries,
            duration_ms=600, deliveries=[native])  # fmt: skip
    add_attempt(row, 1, "http_503", model="gpt-4o", status=503, started_ms=700, duration_ms=400, deliveries=[native])
    add_attempt(row, 2, "ok", provider="deepseek", model="deepseek-chat", status=200, started_ms=1200, duration_ms=7220,
            first_content_ms=2600, deliveries=[described], dropped_params=["top_k"])  # fmt: skip
    return row


pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def find_ids(admin: Client, query: str, **parameters: str) -> list[str]:
    response = admin.get(reverse("requests"), {"q": query, **parameters})
    assert response.status_code == 200
    rows = Page(response).table_rows
    urls = [[url for url in row.link_urls if url.startswith("/requests/") and "?" not in url] for row in rows]
    return [row_urls[0].split("/")[2] for row_urls in urls]


def test_each_search_key_narrows_the_list(admin: Client) -> None:
    log_design_request()
    log_request("req_bad", 190, outcome="upstream_auth", status=502, agent="vision-agent", task_type="planning")
    log_request("req_good", 3, provider="echo", model="echo-text")
    assert find_ids(admin, "") == ["req_design", "req_good", "req_bad"]
    assert find_ids(admin, "status:error") == ["req_bad"]
    assert find_ids(admin, "status:fallback") == ["req_design"]
    assert find_ids(admin, "status:502") == ["req_bad"]
    assert find_ids(admin, "status:upstream_auth") == ["req_bad"]
    assert find_ids(admin, "task:planning since:1h") == ["req_good"]
    assert find_ids(admin, "until:1h") == ["req_bad"]
    assert find_ids(admin, "provider:openai") == ["req_design"]
    assert find_ids(admin, "provider:openai model:gpt-4o") == ["req_design"]
    assert find_ids(admin, "provider:openai model:qwen-vl") == []
    assert find_ids(admin, "agent:vision-agent") == ["req_bad"]
    assert find_ids(admin, "req_g") == ["req_good"]


def test_search_finds_requests_by_a_leaked_key(demo: None, admin: Client) -> None:
    """The key or its public part also finds calls on behalf of an agent that the key's agent created."""
    key = create_key("vision-agent")
    owner, mine = Agent.objects.get(agent_id="vision-agent"), {"key": key.split("_")[1]}
    for number, agent, fields in ((1, "vision-agent", mine), (2, "vision-agent", {"key": "another1"})):
        RequestLog.objects.filter(pk=log_request(f"req_{number}", number, agent=agent).pk).update(**fields)
    assert find_ids(admin, f"key:{key[:11]}") == ["req_1"]
    Agent.objects.create(agent_id="made", name="made", owner=owner, origin=Agent.Origin.RUNTIME)
    RequestLog.objects.filter(pk=log_request("req_3", 3, agent="made").pk).update(**mine)
    assert find_ids(admin, f"key:{key}") == ["req_1", "req_3"]
    assert find_ids(admin, "key:ra_00000000") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("sta", ["status:"]),
        ("task:d", ["task:design", "task:old design"]),
        ("status:error task:DES", ["status:error task:design", 'status:error task:"old design"']),
        ("provider:o", []),
        ("color:", []),
    ],
)
def test_suggestions_complete_the_last_word_and_keep_the_preceding_text(query: str, expected: list[str]) -> None:
    suggestions = suggest(query, {"task": ["old design", "planning", "design"]})
    assert [suggestion.replace('"', "") for suggestion in suggestions] == [
        suggestion.replace('"', "") for suggestion in expected
    ]


def test_newer_requests_are_counted_and_announced_only_once(admin: Client) -> None:
    first = log_request("req_1", 5)
    after = search.write_cursor(first)
    log_request("req_old", 9)
    for number in range(3):
        log_request(f"req_new{number}", 1, task_type="design" if number else "planning")
    newer = reverse("requests_newer")
    assert "3 new" in Page(admin.get(newer, {"after": after, "count": "0"})).text
    assert "2 new" in Page(admin.get(newer, {"after": after, "count": "0", "q": "task:design"})).text
    assert admin.get(newer, {"after": after, "count": "3"}).status_code == 204
    assert search.count_newer(parse(""), "nonsense") == 0


def test_polling_for_new_requests_can_be_paused(admin: Client) -> None:
    log_request("req_1", 5)
    newer = reverse("requests_newer")

    def follows(page: Page) -> bool:
        return any(url.startswith(newer) for url in page.polled_urls)

    following = Page(admin.get(reverse("requests"), {"q": "task:planning"}))
    assert follows(following)
    assert "?q=task%3Aplanning&live=off" in following.link_urls
    paused = Page(admin.get(reverse("requests"), {"q": "task:planning", "live": "off"}))
    assert not follows(paused)
    assert not follows(Page(admin.get(reverse("requests"))))
    assert "?q=task%3Aplanning&live=on" in paused.link_urls
    assert follows(Page(admin.get(reverse("requests"), {"live": "on"})))


def test_keyset_pagination_returns_every_request_exactly_once(admin: Client) -> None:
    moment = timezone.now()
    RequestLog.objects.bulk_create(
        RequestLog(
            id=f"r{number:03}", started_at=moment - timedelta(seconds=number // 40), surface="chat", outcome="ok"
        )
        for number in range(120)
    )
    all_ids = list(RequestLog.objects.order_by("-started_at", "-pk").values_list("pk", flat=True))
    search, ids_seen, before = parse(""), [], ""
    pages = []
    while True:
        result = find(search, before)
        pages.append(result)
        ids_seen += [row.pk for row in result.rows]
        if not result.older:
            break
        before = result.older
    assert ids_seen == all_ids
    assert [len(page.rows) for page in pages] == [PAGE, PAGE, 20]
    previous_page = find(search, after=pages[1].newer)
    assert [row.pk for row in previous_page.rows] == all_ids[:PAGE]
    assert not previous_page.newer
    assert find(search, before="nonsense").rows == pages[0].rows


def test_request_list_query_count_is_the_same_for_three_and_thirty_requests(
    admin: Client, django_assert_num_queries: Any
) -> None:
    for number in range(3):
        log_request(f"a{number}")
    admin.get(reverse("requests"))
    with django_assert_num_queries(6, using="logs"):
        admin.get(reverse("requests"))
    for number in range(30):
        log_request(f"b{number}")
    with django_assert_num_queries(6, using="logs"):
        admin.get(reverse("requests"))


PLANS = [
    ("", "request_newest"),
    ("status:error", "request_failed"),
    ("status:429", "request_failed"),
    ("status:quota", "request_failed"),
    ("surface:chat", "sqlite_autoindex"),
    ("status:fallback", "request_fell_back"),
    ("task:planning", "request_task"),
    ("agent:a", "request_agent"),
    ("files:any", "request_files"),
    ("files:as_is", "request_files"),
    ("req_4", "sqlite_autoindex"),
]


@pytest.mark.sqlite
@pytest.mark.parametrize(("query", "index"), PLANS)
def test_every_search_uses_an_index(db: None, query: str, index: str) -> None:
    """On SQLite, every search uses an index, and only rows that were collected by their ids are sorted."""
    log_request("req_4")
    rows = search.filter_rows(parse(query), timezone.now()).order_by("-started_at", "-pk")[: PAGE + 1]
    plan = rows.explain()
    assert index in plan
    if index != "sqlite_autoindex":
        assert "TEMP B-TREE FOR ORDER BY" not in plan


def test_common_id_prefix_is_searched_by_scanning_the_newest_requests(db: None) -> None:
    """If only a few ids have the prefix, their rows are collected first.

    If many ids have it, the newest requests are scanned instead.
    """
    log_request("req_5")
    now, values = timezone.now(), {"surface": "chat", "outcome": "ok"}
    numbers = range(MAX_RARE_ROWS + 1)
    RequestLog.objects.bulk_create(
        RequestLog(id=f"req_4{number:04}", started_at=now - timedelta(seconds=number), **values) for number in numbers
    )
    newest = [f"req_4{number:04}" for number in range(PAGE)]
    assert [row.pk for row in find(parse("req_4")).rows] == newest
    assert [row.pk for row in find(parse("req_400")).rows] == newest


def test_request_page_shows_summary_attempts_and_losses(admin: Client) -> None:
    page = Page(admin.get(reverse("request", args=[log_design_request().pk])))
    assert page.shows("deepseek-chat answered design without the image")
    assert page.shows("qwen-vl: The provider rate-limits the calls (429, 2 tries).")
    assert page.shows(f"deepseek-chat got a description of shot.png: {CANNOT_SEE}")
    assert page.shows("Described only")
    assert page.code("top_k")
    assert page.image("Attempt timeline; the table below has the same numbers")


def test_recorded_message_is_shown_only_to_administrators(admin: Client, viewer: Client) -> None:
    row = log_request("req_body", body={"messages": [{"role": "user", "content": "meet me at noon"}]})
    address = reverse("request", args=[row.pk])
    assert Page(admin.get(address)).shows("meet me at noon")
    assert not Page(viewer.get(address)).shows("meet me at noon")


@pytest.mark.parametrize("column", ["sentence", "error"])
def test_provider_text_is_escaped(admin: Client, column: str) -> None:
    row = log_request("req_xss", outcome="http_500", **{column: "<script>alert(1)</script>"})
    add_attempt(row, 0, "http_500", status=500, **{column: "<img src=x>"})
    page = Page(admin.get(reverse("request", args=[row.pk])))
    assert page.shows("<script>alert(1)</script>")
    assert not [control for control in page.controls if control.attributes.get("src") == "x"]


def test_unknown_request_returns_404(admin: Client) -> None:
    assert admin.get(reverse("request", args=["req_none"])).status_code == 404


def headline(row: RequestLog) -> str:
    return build_story(row, build_steps(list(row.attempts.order_by("position")))).headline


def test_each_request_ending_has_its_own_summary(db: None) -> None:
    direct = log_request("1", model="gpt-4o")
    add_attempt(direct, 0, "ok")
    assert headline(direct) == "gpt-4o answered planning directly"
    second = log_request("2", model="gpt-4o")
    add_attempt(second, 0, "http_500", status=500)
    add_attempt(second, 1, "ok")
    assert headline(second) == "gpt-4o answered planning after 1 failed candidate"
    single = log_request("3", outcome="upstream_auth", status=502)
    add_attempt(single, 0, "http_401", model="gpt-4o", status=401)
    assert headline(single) == "gpt-4o could not answer planning, and no other model was tried"
    exhausted = log_request("4", outcome="all_providers_failed", status=502)
    add_attempt(exhausted, 0, "http_500")
    add_attempt(exhausted, 1, "http_500")
    assert headline(exhausted) == "None of the 2 candidates could answer planning"
    broken = log_request("5", outcome="stream_broken", first_content_ms=5)
    add_attempt(broken, 0, "stream_broken", model="gpt-4o")
    assert headline(broken) == "The answer from gpt-4o to planning was cut off"
    assert "before any model" in headline(log_request("6", outcome="model_not_found", status=404, chain=[]))
    assert "caller disconnected" in headline(log_request("7", outcome=CANCELLED))


@pytest.mark.parametrize("outcome", ["ok", "all_providers_failed", CANCELLED])
def test_summary_explains_a_stream_that_began_with_keep_alive_comments(db: None, outcome: str) -> None:
    row = log_request("1", model="gpt-4o", outcome=outcome, answer={"keepAliveMs": 20_000.4})
    add_attempt(row, 0, "ok" if outcome == "ok" else "http_500")
    steps = build_steps(list(row.attempts.order_by("position")))
    explanation = "After 20.0 s without content the stream began with keep-alive comments, so its status is 200."
    assert build_story(row, steps).why[-1] == explanation
    with translation.override("zh-hans"):
        assert "保活注释" in build_story(row, steps).why[-1]
    assert outcome != "ok" or build_story(row, steps).tone == "ok"


@pytest.mark.parametrize(("language", "link_text"), [("en", "2 of 3"), ("zh-hans", "第 2 个，共 3 个")])
def test_page_of_a_choice_links_to_the_other_choices_of_the_same_call(
    admin: Client, demo: None, language: str, link_text: str
) -> None:
    for number in ("req_n", "req_n~2", "req_n~3"):
        log_request(number, answer={"choice": {"number": 2, "of": 3, "first": "req_n"}})
    page = Page(admin.get(reverse("request", args=["req_n~2"]), headers={"accept-language": language}))
    link = page.link(link_text)
    assert link is not None
    listed = Page(admin.get(link.attributes["href"])).link_urls
    assert {reverse("request", args=[number]) for number in ("req_n", "req_n~2", "req_n~3")} <= set(listed)


def test_every_attempt_outcome_has_an_explanation() -> None:
    assert all(explain_outcome(outcome) for outcome in [*Fault, *SkipReason, CANCELLED, "aborted"])
    assert explain_outcome("ok") == explain_outcome("none such") == ""


@pytest.mark.parametrize("outcome", [*Fault, *SkipReason, CANCELLED, "aborted"])
def test_every_attempt_outcome_has_advice(outcome: str) -> None:
    sentence, page = ADVICE[outcome]
    assert sentence
    if outcome in CALLERS_FAULTS | {CANCELLED}:
        assert page in (Remedy.NONE, Remedy.MATRIX)


def test_failed_request_page_begins_with_advice_and_a_link_to_the_fix(admin: Client, demo: None) -> None:
    row = log_request("req_bad", outcome="all_providers_failed", status=502, task_type="design")
    add_attempt(row, 0, "http_401", status=401, sentence="Incorrect API key")
    add_attempt(row, 1, "key_missing", provider="gone")
    advice = Page(admin.get(reverse("request", args=[row.pk]))).region("What to do")
    assert advice.shows("openai rejects the key. Store a valid one.")
    assert reverse("provider", args=["openai"]) in advice.link_urls
    assert advice.quotation("Incorrect API key")
    assert advice.shows("gone has no usable key. Add one.")
    assert reverse("provider", args=["gone"]) not in advice.link_urls


@pytest.mark.parametrize(
    ("outcome", "fault"),
    [("upstream_400", "http_400"), ("upstream_413", "http_413"), (CANCELLED, CANCELLED), ("invalid_json", "")],
)
def test_page_of_a_request_rejected_for_a_client_error_links_to_no_provider_or_route(
    admin: Client, demo: None, outcome: str, fault: str
) -> None:
    row = log_request("req_bad", outcome=outcome, status=400, task_type="design", chain=[])
    if fault:
        add_attempt(row, 0, fault)
    page = Page(admin.get(reverse("request", args=[row.pk])))
    advice = page.region("What to do")
    assert advice.link_urls == []
    assert not advice.shows("Failed")
    assert page.link("Change the route") is None


def test_request_without_files_mentions_no_files(admin: Client) -> None:
    row = log_request("req_good")
    add_attempt(row, 0, "ok")
    page = Page(admin.get(reverse("request", args=[row.pk])))
    assert page.shows("No fallback was needed.")
    assert not page.shows("every file arrived")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"asked_model": "task:design", "task_type": "design"}, ("design", "route", "")),
        ({"asked_model": "auto", "task_type": "default"}, ("default", "route", "")),
        ({"asked_model": "gpt-4o", "task_type": "design"}, ("gpt-4o", "route", "design")),
        ({"asked_model": "echo-vision", "task_type": ""}, ("echo-vision", "service", "")),
        ({"asked_model": "echo/echo-text", "task_type": ""}, ("echo/echo-text", "model", "")),
        ({"asked_model": "x", "task_type": "", "chain": [], "outcome": "model_not_found"}, ("x", "nothing", "")),
        ({"task_type": "", "chain": []}, ("req_1", "", "")),
    ],
)
def test_request_list_shows_the_requested_model_or_route(
    db: None, columns: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    name_asked = requested_target(log_request("req_1", **columns))
    assert (name_asked.name, name_asked.kind, name_asked.route) == expected


def test_candidates_skipped_for_the_same_reason_share_a_chip() -> None:
    names = [f"p/{number}" for number in range(5)]
    codes = ["key_missing", "key_missing", "503", "503", "key_missing"]
    chips = color_chips(
        [{"name": name, "code": code, "tone": "warn"} for name, code in zip(names, codes, strict=True)], "failed"
    )
    folded = [(str(chip["code"]), chip.get("tries", 1), chip["name"]) for chip in fold_skips(chips)]
    assert folded == [
        ("skipped: no key", 2, "p/0, p/1"),
        ("503", 1, "p/2"),
        ("503", 1, "p/3"),
        ("skipped: no key", 1, "p/4"),
    ]


def test_failed_requests_are_red_and_rejected_requests_are_not(admin: Client) -> None:
    chip = {"name": "a/b", "code": "429", "tone": "warn", "tries": 3}
    log_request("req_1", outcome="upstream_429", status=429, chain=[chip])
    (row,) = Page(admin.get(reverse("requests"))).table_rows
    assert row.shows("×3")
    assert row.chip("Failed").tone == "bad"
    RequestLog.objects.update(outcome="upstream_400", ending="refused")
    (row,) = Page(admin.get(reverse("requests"))).table_rows
    assert row.chip("Refused").tone == ""


def test_every_attempt_shows_the_explanation_of_the_fault(admin: Client) -> None:
    row = log_request("req_all", outcome="all_providers_failed", status=502, chain=[])
    meanings = [TABLE[fault].meaning for fault in Fault]
    for position, fault in enumerate(Fault):
        add_attempt(row, position, fault)
    page = Page(admin.get(reverse("request", args=[row.pk])))
    cells = [control.text for control in page.controls if control.tag == "td"]
    assert [cell for cell in cells if cell in meanings] == meanings


@pytest.mark.parametrize("code", list(ReasonCode))
def test_translated_delivery_reason_contains_the_same_facts(code: ReasonCode) -> None:
    facts = dict.fromkeys(
        ["capability", "mime_type", "protocol", "kind", "role", "slot", "actual", "limit", "problem"], "7"
    )
    sentence = make_reason(code, **facts).sentence()
    stored = json.loads(json.dumps(encode_text(sentence)))
    assert render_reason(stored).ours == sentence == SENTENCES[code] % facts
    with translation.override("zh-hans"):
        rendered = render_reason(stored).ours
    assert rendered != sentence
    assert rendered.count("7") == sentence.count("7")


def test_waterfall_has_a_bar_for_every_try_and_marks_the_first_content(db: None) -> None:
    """The last track shows the time without calls, so that bars and waits add up to the whole duration."""
    row = log_design_request()
    tracks = build_tracks(build_steps(list(row.attempts.order_by("position"))), row.duration_ms)
    assert [len(track.bars) for track in tracks] == [2, 1, 2, 2]
    assert [(bar.start, bar.end) for bar in tracks[3].bars] == [(600, 700), (1100, 1200)]
    assert tracks[3].label == "Our own work: 0.20 s"
    assert tracks[2].bars[0].early
    assert (tracks[2].bars[0].end, tracks[2].bars[1].end) == (3800, 8420)


def test_skipped_candidate_has_a_grey_label_instead_of_a_waterfall_bar(admin: Client) -> None:
    chain = [
        {"name": "openai/a", "code": "skipped_cooling", "tone": ""},
        {"name": "openai/b", "code": "key_missing", "tone": "bad"},
        {"name": "openai/c", "code": "503", "tone": "bad"},
        {"name": "openai/d", "code": "200", "tone": "ok"},
    ]
    row = log_request("req_1", chain=chain, fell_back=True, provider="openai", model="d", duration_ms=300)
    add_attempt(row, 0, "skipped_cooling", model="a")
    add_attempt(row, 1, "key_missing", model="b")
    add_attempt(row, 2, "http_503", model="c", status=503, duration_ms=100)
    add_attempt(row, 3, "ok", model="d", status=200, started_ms=100, duration_ms=200)
    tracks = build_tracks(build_steps(list(row.attempts.order_by("position"))), row.duration_ms)
    assert [(track.number, track.label) for track in tracks] == [(3, "c"), (4, "d")]
    for address in (reverse("request", args=[row.pk]), reverse("requests")):
        page = Page(admin.get(address))
        tones = {words: page.chip(words).tone for words in ("skipped: cooling down", "skipped: no key", "503")}
        assert tones == {"skipped: cooling down": "", "skipped: no key": "", "503": "warn"}
    assert headline(row) == "d answered planning after 1 failed candidate"
    RequestLog.objects.update(outcome="all_providers_failed", ending="failed")
    page = Page(admin.get(reverse("requests")))
    assert (page.chip("503").tone, page.chip("skipped: no key").tone) == ("bad", "")


def test_request_advice_does_not_repeat_the_attempt_table(admin: Client, demo: None) -> None:
    row = log_request("req_1", outcome="upstream_error", status=502)
    meaning = explain_outcome(Fault.TLS_CERT_ERROR)
    add_attempt(row, 0, Fault.TLS_CERT_ERROR, model="gpt-4o", sentence=encode_text(TABLE[Fault.TLS_CERT_ERROR].message))
    page = Page(admin.get(reverse("request", args=[row.pk])))
    assert page.text.count(meaning) == 1
    link = page.link("Record request bodies")
    assert link is not None
    assert link.attributes["href"] == f"{reverse('settings')}#bodies"


@pytest.mark.parametrize(
    ("adaptation", "badge", "kind"),
    [
        ("", "", ""),
        ("image=native", "native", "Image"),
        ("image=native;file=described:2", "described", "Document"),
        ("file=extracted", "converted", "Document"),
    ],
)
def test_request_list_shows_the_worst_file_outcome(adaptation: str, badge: str, kind: str) -> None:
    """A file replaced by a description is worse than a converted one, which is worse than one sent natively."""
    assert worst_badge(adaptation) == {"badge": badge, "kind": kind}


def test_request_list_shows_the_columns_chosen_in_this_browser(admin: Client) -> None:
    log_request(
        "req_1", agent="writer", provider="deepseek", model="deepseek-chat", cost_nanos=2_500_000, currency="USD",
        prompt_tokens=1204, completion_tokens=380, first_content_ms=480, duration_ms=2100,
        adaptation="image=described:2;file=extracted",
    )  # fmt: skip
    address = reverse("requests")

    def headings() -> list[str]:
        return Page(admin.get(address)).columns

    usual = ["Time UTC", "Agent", "Asked for", "Answered by", "Attempts", "Files", "Tokens", "Cost", "Duration"]
    assert headings() == usual
    (row,) = Page(admin.get(address)).table_rows
    for text in ("writer", "deepseek-chat", "Image: Described only", "Document: Converted", "1,204", "380", "2.10 s"):
        assert row.shows(text)
    assert row.shows("0.0025 USD")
    answer = admin.post(reverse("requests_columns"), {"column": ["first", "agent", "no such"], "next": address})
    assert answer.url == address
    assert headings() == ["Time UTC", "Agent", "First content"]
    admin.post(reverse("requests_columns"), {"next": "https://elsewhere.example/"})
    assert headings() == usual


def test_filters_chosen_in_the_form_equal_typed_search_terms(admin: Client, demo: None) -> None:
    fields = {"form": "1", "q": "status:failed agent:old user:u1", "agent": "writer one", "files": "described"}
    answer = admin.get(reverse("requests"), {**fields, "since": "7d"})
    page = admin.get(answer.url)
    assert page.context["typed"] == 'status:failed user:u1 agent:"writer one" files:described since:7d'
    chips = {str(chip.label): chip for chip in page.context["chips"] if chip.is_on}
    assert list(chips) == ["Failed", "u1", "writer one", "Described only", "Last 7 days"]
    left = admin.get(reverse("requests") + chips["writer one"].url).context["typed"]
    assert left == "status:failed user:u1 files:described since:7d"
    form = page.context["form"]
    assert (form["named"][0].key, form["named"][0].value) == ("agent", "writer one")
    answer = admin.get(reverse("requests"), {"form": "1", "q": "since:7d", "from": "2026-11-20T10:00"})
    assert admin.get(answer.url).context["form"]["from"] == "2026-11-20T10:00"


@pytest.mark.parametrize(
    ("chosen", "typed"),
    [
        ({}, "until:5m since:90m"),
        ({"since": "1h"}, "until:5m since:1h"),
        ({"from": "2026-11-20T10:00"}, "until:5m since:2026-11-20T10:00"),
        ({"from": "", "until": ""}, ""),
    ],
)
def test_filter_form_shows_a_relative_time_as_a_date(
    chosen: dict[str, str], typed: str, admin: Client, demo: None
) -> None:
    """The fields of the form accept only dates."""
    form = admin.get(reverse("requests"), {"q": "until:5m since:90m"}).context["form"]
    shown = {"from": form["from"], "until": form["until"]}
    assert all(shown.values())
    fields = {"form": "1", "q": "until:5m since:90m", "since": "", **shown, **chosen}
    answer = admin.get(reverse("requests"), {**fields, **{f"shown-{name}": value for name, value in shown.items()}})
    assert sorted(admin.get(answer.url).context["typed"].split()) == sorted(typed.split())


def test_filter_form_field_suggests_at_most_20_names(admin: Client, demo: None) -> None:
    words = reverse("requests_words")

    def suggestions(**typed: str) -> list[str]:
        return [control.value for control in Page(admin.get(words, typed)).controls if control.tag == "option"]

    assert "vision-agent" in suggestions(agent="vision")
    assert "design" in suggestions(task="des")
    assert suggestions(provider="no such") == []


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("any", ["native", "cut", "extracted", "described"]),
        ("as_is", ["native"]),
        ("converted", ["extracted"]),
        ("cut", ["cut"]),
        ("described", ["described"]),
    ],
)
def test_search_finds_requests_by_file_delivery_form(admin: Client, form: str, expected: list[str]) -> None:
    log_request("native", 1, adaptation="image=native:2")
    log_request("cut", 2, adaptation="text=inlined:cut")
    log_request("extracted", 3, adaptation="file=extracted")
    log_request("described", 4, adaptation="image=described:by_model:3")
    log_request("none", 5)
    assert find_ids(admin, f"files:{form}") == expected
    assert parse("files:nonsense").problems


def test_values_in_a_request_row_link_to_the_list_filtered_by_the_value(admin: Client) -> None:
    long_name = "an-agent-with-a-name-that-does-not-fit-into-its-column"
    log_request("req_1", agent=long_name, provider="azure", model="gpt 4o", outcome="stream_broken")
    (row,) = Page(admin.get(reverse("requests"), {"q": "task:planning agent:" + long_name})).table_rows
    assert {
        f"?q=task%3Aplanning+agent%3A{long_name}",
        f"?q=agent%3A{long_name}+task%3Aplanning",
        f"?q=task%3Aplanning+agent%3A{long_name}+model%3A%22gpt+4o%22",
        f"?q=task%3Aplanning+agent%3A{long_name}+provider%3Aazure",
        f"?q=task%3Aplanning+agent%3A{long_name}+status%3Afailed",
    } <= set(row.link_urls)
    name = next(control for control in row.controls if control.attributes.get("title") == long_name)
    assert [part.text for part in name.controls if part.attributes.get("class") == "mid"]


def test_rejected_requests_count_neither_as_failed_nor_as_answered(admin: Client) -> None:
    log_request("req_1", outcome="invalid_json", status=400)
    log_request("req_2", outcome="client_cancelled", status=499)
    page = Page(admin.get(reverse("requests")))
    assert page.shows("2 requests")
    assert page.shows("0 failed (0%)")
    assert page.link("1 refused")
    assert page.link("1 cancelled")
    assert not page.shows("answered by a fallback")
