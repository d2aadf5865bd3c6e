"""Charts, without a browser: round axis labels, buckets in the installation's time zone, and bars with their texts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.template.loader import render_to_string
from django.utils import timezone, translation
from hypothesis import given
from hypothesis import strategies as st

from routing_admin.console.base.tags.charting import (
    Bucket,
    Chart,
    Mark,
    Series,
    Step,
    axis_texts,
    draw,
    label_times,
    list_starts,
    round_axis,
    write_span,
)

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


def buckets(step: Step, since: datetime, now: datetime, **fields: Any) -> list[Bucket]:
    starts = list_starts(since, now, step)
    return [
        Bucket(start=start, stop=stop, url=f"/r/?{number}", **fields)
        for number, (start, stop) in enumerate(pairwise(starts))
    ]


def chart(series: list[Series], **fields: Any) -> Chart:
    hours = buckets(Step.HOUR, NOON, NOON + timedelta(hours=2))
    given_fields = {"label": "Requests", "unit": "requests", "step": Step.HOUR, "buckets": hours, **fields}
    return Chart(series=series, write=lambda value: f"{value:,.0f}", empty="No requests.", **given_fields)


def series(name: str, *values: float, tone: str = "c1") -> Series:
    return Series(name=name, tone=tone, values=values)


@given(st.floats(1e-9, 1e15), st.booleans())
def test_axis_has_four_to_six_round_gridlines(largest: float, is_whole: bool) -> None:
    axis = round_axis(largest, is_whole=is_whole)
    assert 4 <= len(axis.values) <= 6
    assert axis.values[0] == 0
    assert axis.top >= largest * (1 - 1e-8)
    step = Decimal(str(axis.values[1])).normalize()
    assert "".join(map(str, step.as_tuple().digits)) in {"1", "2", "25", "5"}
    assert not is_whole or step == int(step)


@pytest.mark.parametrize(
    ("largest", "english", "chinese"),
    [
        (0, ["0", "1", "2", "3"], ["0", "1", "2", "3"]),
        (2, ["0", "1", "2", "3"], ["0", "1", "2", "3"]),
        (600, ["0", "200", "400", "600"], ["0", "200", "400", "600"]),
        (4_800, ["0", "1,000", "2,000", "3,000", "4,000", "5,000"], ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]),
        (12_000, ["0", "2.5k", "5k", "7.5k", "10k", "12.5k"], ["0", "0.25 万", "0.5 万", "0.75 万", "1 万", "1.25 万"]),
        (9_400_000, ["0", "2M", "4M", "6M", "8M", "10M"], ["0", "200 万", "400 万", "600 万", "800 万", "1,000 万"]),
    ],
)
def test_all_gridline_labels_have_the_same_unit(largest: float, english: list[str], chinese: list[str]) -> None:
    for language, expected in (("en", english), ("zh-hans", chinese)):
        with translation.override(language):
            assert axis_texts(round_axis(largest)) == expected


def test_axis_labels_of_amounts_below_one_unit_have_decimals() -> None:
    assert axis_texts(round_axis(0.0021, is_whole=False)) == ["0", "0.0005", "0.001", "0.0015", "0.002", "0.0025"]


def test_buckets_begin_at_local_times_of_the_installation() -> None:
    """Due to daylight saving time, days have 23 to 25 hours. Weeks begin at midnight on Monday."""
    with timezone.override(BERLIN):
        days = list_starts(datetime(2026, 10, 24, 0, tzinfo=BERLIN), datetime(2026, 10, 26, 9, tzinfo=BERLIN), Step.DAY)
        hours = [(later.timestamp() - day.timestamp()) / 3600 for day, later in pairwise(days)]
        assert hours == [24, 25, 24]
        weeks = buckets(Step.WEEK, datetime(2026, 10, 22, 5, tzinfo=BERLIN), datetime(2026, 10, 26, tzinfo=BERLIN))
        assert [write_span(week, Step.WEEK) for week in weeks] == ["2026-10-19 – 10-25", "2026-10-26 – 11-01"]
        months = buckets(Step.MONTH, datetime(2025, 12, 3, tzinfo=BERLIN), datetime(2026, 1, 1, tzinfo=BERLIN))
        assert [write_span(month, Step.MONTH) for month in months] == ["2025-12", "2026-01"]


def test_time_axis_is_labelled_at_round_hours_and_mondays() -> None:
    """A day is labelled every four hours, with the date at midnight. A month is labelled on each Monday."""
    hours = buckets(Step.HOUR, NOON - timedelta(hours=24), NOON)
    assert [text for _, text in label_times(hours, Step.HOUR)] == [
        *("12:00", "16:00", "20:00", "11-26", "04:00", "08:00", "12:00"),
    ]
    days = buckets(Step.DAY, NOON - timedelta(days=29), NOON)
    assert [text for _, text in label_times(days, Step.DAY)] == ["11-02", "11-09", "11-16", "11-23"]
    assert write_span(hours[0], Step.HOUR) == "2026-11-25 12:00–13:00"


def test_bars_are_stacked_from_the_axis_upwards() -> None:
    """The last series begins at the axis, and the first series is on top."""
    drawing = draw(chart([series("answered", 6, 0, 2), series("failed", 3, 0, 0, tone="bad")]), 100)
    assert [path.tone for path in drawing.paths] == ["bad", "c1"]
    assert drawing.paths[0].shape == "M1 112V82h8V112z"
    assert drawing.paths[1].shape == "M1 82V22h8V82zM21 112V92h8V112z"
    assert [(entry.name, entry.total) for entry in drawing.legend] == [("answered", "8"), ("failed", "3")]
    assert [line.label for line in drawing.gridlines] == ["0", "2", "4", "6", "8", "10"]
    assert [(column.total, [part.text for part in column.parts]) for column in drawing.columns] == [
        ("9", ["6", "3"]),
        ("0", []),
        ("2", ["2"]),
    ]


def test_single_failure_among_thousands_is_visible_in_a_chart() -> None:
    drawing = draw(chart([series("answered", 9000, 0, 0), series("failed", 1, 0, 0, tone="bad")]), 100)
    assert drawing.paths[0].shape == "M1 112V110.5h8V112z"


def test_chart_has_at_most_six_series_and_adds_up_the_others() -> None:
    drawing = draw(chart([series(f"s{number}", number, 0, 0) for number in range(9, 0, -1)]), 100)
    assert [entry.name for entry in drawing.legend] == ["s9", "s8", "s7", "s6", "s5", "s4", "others"]
    assert drawing.legend[-1].total == "6"


def test_chart_values_are_available_as_text_in_a_table() -> None:
    name = "payments-" + "x" * 60
    hours = buckets(Step.HOUR, NOON, NOON + timedelta(hours=2), mark=Mark(text="Revision 3", url="/history/3/"))
    html = render_to_string(
        "components/chart.html",
        {"drawing": draw(chart([series(name, 5, 0, 7)], buckets=hours, before=(1, 2, 3), before_name="before"), 100)},
    )
    short = "payments-xxxxxxxx…xxxxxxxxxxxxxx"
    assert html.count('<a href="/r/?0">') == 2
    assert f'<span class="tip"><b>2026-11-26 12:00–13:00</b><span class="c1">{short} <b>5</b></span>' in html
    assert '<td class="num">7</td><td class="num">7</td><td class="num">3</td>' in html
    assert f'title="{name}"' in html
    assert '<a class="event" href="/history/3/" title="Revision 3"></a>' in html
    assert "Times in UTC." in html


def test_incomplete_bucket_is_marked() -> None:
    hours = buckets(Step.HOUR, NOON, NOON + timedelta(hours=1))
    running = Bucket(start=NOON + timedelta(hours=2), stop=NOON + timedelta(hours=3), url="/r/", is_partial=True)
    context = {"drawing": draw(chart([series("s", 1, 1, 1)], buckets=[*hours, running]), 100)}
    html = render_to_string("components/chart.html", context)
    assert html.count('<li class="far part">') == 1
    assert "Striped: only a part of the time is counted." in html


def test_empty_chart_has_gridlines_and_time_labels_but_no_bars() -> None:
    html = render_to_string("components/chart.html", {"drawing": draw(chart([series("s", 0, 0, 0)]), 100)})
    assert "No requests." in html
    assert html.count('class="tick"') == 4
    assert "<table" not in html
    assert "<a " not in html
