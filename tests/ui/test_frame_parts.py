"""Parts of the frame (the layout that all pages share), without a browser: charts, times and sizes, htmx headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib import messages
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.messages.storage.base import Message
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.test import RequestFactory
from django.utils import translation
from django_htmx.middleware import HtmxMiddleware
from hypothesis import given
from hypothesis import strategies as st

from capabilities.quantities import duration_text
from routing_admin.console.base.page_responses import HtmxPagesMiddleware
from routing_admin.console.base.tags import ui
from routing_admin.console.base.tags.drawing import Bar, Track, spark_points, split_boxes, tick_step, waterfall
from routing_admin.console.base.tags.highlight import highlight_json
from routing_admin.console.base.tags.ui import relative

NOW = datetime(2026, 11, 20, 14, 8, tzinfo=UTC)
times = st.floats(0, 1e7, allow_nan=False)


def percent_number(share: str) -> float:
    return float(share.removesuffix("%"))


@given(st.lists(st.lists(times, min_size=2, max_size=8), min_size=1, max_size=6))
def test_waterfall_bars_are_within_the_track_and_visibly_wide(moments: list[list[float]]) -> None:
    tracks = [
        Track("m", tuple(Bar(a, b) for a, b in zip(row[::2], row[1::2], strict=False))) for row in map(sorted, moments)
    ]
    layout = waterfall(tracks)
    assert layout.height == 24 + 42 * len(tracks)
    for row in layout.rows:
        assert all(
            percent_number(box.x) + percent_number(box.width) <= 100.02 and percent_number(box.width) >= 0.4
            for box in row.boxes
        )
        assert all(percent_number(span.start) <= percent_number(span.end) <= 100 for span in row.waits)
        assert len(row.waits) < len(row.boxes)


@given(st.floats(1, 1e7))
def test_time_axis_steps_are_one_two_or_five(total: float) -> None:
    step = tick_step(total)
    assert f"{step:e}"[0] in "125"
    assert 2 <= total / step <= 5.001


def test_waterfall_of_a_real_request_has_the_designed_positions() -> None:
    tracks = [Track("gpt-4o", (Bar(1260, 1600, "warn"), Bar(1720, 2030, "warn"))), Track("late", (Bar(8000, 9000),))]
    first, second = waterfall(tracks, 9000).rows
    assert (first.x, first.y, first.boxes[0].y, first.boxes[0].x) == ("14.00%", 35, 41, "14.00%")
    assert (first.waits[0].start, first.waits[0].end) == ("17.78%", "19.11%")
    assert (second.anchor, second.x) == ("end", "100.00%")


@given(st.lists(st.floats(0, 1e9), max_size=50))
def test_sparkline_stays_within_its_box(values: list[float]) -> None:
    points = [tuple(map(float, point.split(","))) for point in spark_points(values).split()]
    assert (points[0][0], points[-1][0]) == (0, 100)
    assert all(4 <= y <= 30 for _, y in points)
    assert not values or max(values) > 0 or {y for _, y in points} == {30}


@given(st.dictionaries(st.sampled_from(["native", "converted", "described", "refused"]), st.integers(0, 500)))
def test_proportion_bar_segments_fill_the_bar(counts: dict[str, int]) -> None:
    boxes = split_boxes(counts)
    assert len(boxes) == sum(count > 0 for count in counts.values())
    if boxes:
        assert percent_number(boxes[-1].x) + percent_number(boxes[-1].width) == pytest.approx(100, abs=0.05)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1_258_291, "1.2 MB"), (1_048_575, "1.0 MB"), (None, "")],
)
def test_file_sizes_are_formatted_as_in_descriptions(count: int | None, expected: str) -> None:
    assert ui.size(count) == expected


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [(0, "0 ms"), (35, "35 ms"), (1240, "1.24 s"), (34_100, "34.1 s"), (125_000, "2 min 5 s")],
)
def test_durations_use_the_most_readable_unit(milliseconds: float, expected: str) -> None:
    assert duration_text(milliseconds) == expected


@pytest.mark.parametrize(
    ("before", "english", "chinese"),
    [
        (timedelta(seconds=5), "just now", "刚刚"),
        (timedelta(minutes=1), "1 minute ago", "1 分钟前"),
        (timedelta(minutes=3), "3 minutes ago", "3 分钟前"),
        (timedelta(hours=2), "2 hours ago", "2 小时前"),
        (timedelta(days=1), "yesterday 14:08", "昨天 14:08"),
        (timedelta(days=9), "2026-11-11 14:08", "2026-11-11 14:08"),
        (timedelta(minutes=-5), "in 5 minutes", "5 分钟后"),
        (timedelta(days=-30), "in 30 days", "30 天后"),
    ],
)
def test_times_are_relative_to_now(before: timedelta, english: str, chinese: str) -> None:
    """The exact time is in the `title` attribute. For times before yesterday, the date is shown."""
    for language, expected in (("en", english), ("zh-hans", chinese)):
        with translation.override(language):
            assert relative(NOW - before, NOW) == expected
    assert 'title="2026-11-20 14:08:00 UTC"' in ui.ago(NOW, NOW)


@given(st.text())
def test_json_highlighting_escapes_any_value(text: str) -> None:
    html = str(highlight_json(text))
    for mark in ("k", "s", "e"):
        html = html.replace(f'<span class="{mark}">', "")
    assert "<" not in html.replace("</span>", "")


def test_json_highlighting_marks_keys_strings_and_placeholders() -> None:
    marked = highlight_json('{"a": "b", "data": "<12 bytes>"}')
    assert '<span class="k">&quot;a&quot;</span>' in marked
    assert '<span class="s">&quot;b&quot;</span>' in marked
    assert '<span class="e">&quot;&lt;12 bytes&gt;&quot;</span>' in marked


def test_capability_is_named_in_the_language_of_the_reader_with_its_id() -> None:
    """The id is omitted if it equals the English name."""
    assert "<code" not in ui.caps(["vision", "smell"])
    with translation.override("zh-hans"):
        assert '视觉理解 <code class="xs">vision</code>' in ui.caps(["vision"])


def answer_with_middleware(response: HttpResponse, message: str = "", **headers: str) -> HttpResponse:
    request: HttpRequest = RequestFactory().post(
        "/routes/", headers={key.replace("_", "-"): headers[key] for key in headers}
    )
    request.session = {}  # type: ignore[assignment]
    answer: Callable[[HttpRequest], HttpResponse] = lambda _: response  # noqa: E731
    HtmxMiddleware(answer)(request)
    MessageMiddleware(answer).process_request(request)
    if message:
        messages.success(request, message, extra_tags="undo:41")
    return HtmxPagesMiddleware(answer)(request)


@pytest.mark.urls("frame_urls")
def test_toast_messages_are_sent_in_an_ascii_header_with_other_events() -> None:
    answer = answer_with_middleware(
        HttpResponse("", headers={"HX-Trigger": "providers-changed"}), "已删除", HX_Request="true"
    )
    assert answer.headers["HX-Trigger"].isascii()
    toast = {"text": "已删除", "level": "success", "undo": "/undo/41/"}
    assert json.loads(answer.headers["HX-Trigger"]) == {"providers-changed": None, "toast": {"items": [toast]}}


@pytest.mark.urls("frame_urls")
def test_message_is_shown_on_the_next_page_after_a_redirect() -> None:
    assert (
        "HX-Trigger"
        not in answer_with_middleware(HttpResponseRedirect("/requests/"), "saved", HX_Request="true").headers
    )


@pytest.mark.urls("frame_urls")
def test_htmx_redirect_to_sign_in_replaces_the_page_and_returns_there_afterwards() -> None:
    """After signing in, the user returns to the page and not to the fragment."""
    answer = answer_with_middleware(
        HttpResponseRedirect("/login/?next=/cell/3"), HX_Request="true", HX_Current_URL="http://x/matrix/?provider=a"
    )
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/login/?next=/matrix/%3Fprovider%3Da")


@pytest.mark.urls("frame_urls")
def test_responses_have_vary_no_store_and_security_headers() -> None:
    headers: Any = answer_with_middleware(HttpResponse("page")).headers
    assert "HX-Request" in headers["Vary"]
    assert headers["Cache-Control"] == "no-store, private"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"


def test_toast_without_a_revision_has_no_undo() -> None:
    for tags in ("", "undo:", "undo:x", "undo:-1"):
        assert ui.toast(Message(25, "saved", extra_tags=tags))["undo"] == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("task:chapter_generation", "task:<wbr>chapter_<wbr>generation"),
        ("openai/gpt-5", "openai/<wbr>gpt-5"),
        ("<b>_x", "&lt;b&gt;_<wbr>x"),
        ("plain", "plain"),
    ],
)
def test_ids_can_break_after_a_colon_slash_or_underscore(name: str, expected: str) -> None:
    assert ui.soft_breaks(name) == expected
