"""Lists: the query string selects the rows, their order and the page, and each filter shows how many rows match it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.utils.html import strip_tags

from routing_admin.console.base.lists import Choice, Column, Listing, arrange, natural_key
from routing_admin.console.base.tags.ui import short_name, short_names, times


@dataclass(frozen=True)
class Machine:
    name: str
    state: str = "on"
    load: int = 0


MACHINES = [Machine("m-10", load=5), Machine("m-9", "off"), Machine("N-1", load=7), Machine("m-2", load=5)]
COLUMNS: Mapping[str, Column[Machine]] = {
    "name": Column(lambda row: natural_key(row.name)),
    "load": Column(lambda row: row.load, falling=True),
}
STATE: Choice[Machine] = Choice(
    name="state",
    label="State",
    everything="All",
    values={"on": "On", "off": "Off", "lost": "Lost"},
    values_of=lambda row: (row.state,),
)


def list_machines(query: Mapping[str, str], *, sort: str = "name", per_page: int = 3) -> Listing[Machine]:
    return arrange(
        MACHINES,
        query,
        texts=lambda row: (row.name,),
        columns=COLUMNS,
        choices=[STATE],
        sort=sort,
        per_page=per_page,
    )


def machine_names(listing: Listing[Machine]) -> list[str]:
    return [row.name for row in listing.page]


def test_list_is_sorted_in_natural_order_and_paginated() -> None:
    assert machine_names(list_machines({})) == ["m-2", "m-9", "m-10"]
    assert machine_names(list_machines({"page": "2"})) == machine_names(list_machines({"page": "99"})) == ["N-1"]
    assert machine_names(list_machines({}, sort="", per_page=9)) == ["m-10", "m-9", "N-1", "m-2"]


def test_minus_sign_reverses_the_sort_and_equal_rows_keep_the_order() -> None:
    assert machine_names(list_machines({"sort": "-load"}, per_page=9)) == ["N-1", "m-10", "m-2", "m-9"]
    assert machine_names(list_machines({"sort": "load"}, per_page=9)) == ["m-9", "m-10", "m-2", "N-1"]


def test_column_heading_shows_the_sort_order_and_links_to_the_next_one() -> None:
    listing = list_machines({"sort": "-load"})
    assert (listing.sort_order("load"), listing.sort_order("name")) == ("descending", "")
    assert (listing.next_sort("load"), listing.next_sort("name")) == ("load", "name")
    assert list_machines({}).sort_order("name") == "ascending"
    assert (list_machines({}).next_sort("load"), list_machines({}).next_sort("name")) == ("-load", "-name")


def test_filter_counts_the_whole_list_and_can_be_combined_with_a_search() -> None:
    listing = list_machines({"q": " M- ", "state": "on"})
    assert machine_names(listing) == ["m-2", "m-10"]
    (state,) = listing.selects
    assert [(option.label, option.count) for option in state.options] == [("On", 3), ("Off", 1), ("Lost", 0)]
    assert (listing.total, listing.is_filtered, listing.filters) == (4, True, {"q": "M-", "state": "on"})


def test_unknown_query_parameter_values_are_ignored() -> None:
    listing = list_machines({"state": "sideways", "sort": "--load", "page": "x"})
    assert machine_names(listing) == machine_names(list_machines({}))
    assert (listing.is_filtered, listing.is_sorted, listing.filters) == (False, False, {})


def test_filter_with_a_single_value_is_hidden_unless_chosen() -> None:
    only: Choice[Machine] = Choice(
        name="state", label="", everything="", values={"on": "On"}, values_of=lambda row: ("on",)
    )
    pages = [
        arrange(MACHINES, query, texts=lambda _: (), columns=COLUMNS, choices=[only], per_page=3)
        for query in ({}, {"state": "on"})
    ]
    assert [page.selects[0].is_offered for page in pages] == [False, True]


def test_recent_times_are_shown_relative_and_earlier_times_exact() -> None:
    now = datetime(2026, 3, 10, 12, tzinfo=UTC)
    exact = r'<span class="sub nowrap">03-10 11:57:00</span>'
    assert "3 minutes ago</time></a>" + exact in times(now - timedelta(minutes=3), now, "/there/")
    assert strip_tags(times(now - timedelta(days=3), now)) == "03-07 12:00:00"
    assert strip_tags(times(now - timedelta(days=90), now)) == "2025-12-10 12:00:00"
    assert times(None) == ""


def test_long_name_is_shortened_by_css_only() -> None:
    """Only CSS hides the middle of a long name. A name of 32 characters, or 40 in several words, is shown in full."""
    name = "service" + "wide" * 20
    assert short_name(name) == (
        f'<span class="name" title="{name}">servicewidewidew<span class="mid">{name[16:-6]}</span>dewide</span>'
    )
    for whole in ("a" * 32, "billing-transcription-cleanup-crawler"):
        assert short_name(whole) == f'<span class="name">{whole}</span>'
    assert "mid" in short_name("a" * 33)
    assert "mid" in short_name("billing-transcription-cleanup-and-translation")


def test_long_names_within_a_sentence_are_shortened() -> None:
    """A slash separates two names. A sentence without spaces, as in Chinese, is not shortened like a name."""
    name = "wide" * 20
    sentence = f"<{name}/short> 拒绝了其密钥，" * 2 + "提供商" * 20
    assert short_names(sentence) == f"&lt;{short_name(name)}/short&gt; 拒绝了其密钥，" * 2 + "提供商" * 20


def test_names_break_across_lines_only_at_separators() -> None:
    assert short_name("a/b.c-v3.2_e:f<") == '<span class="name">a/<wbr>b.<wbr>c-v3.2_<wbr>e:<wbr>f&lt;</span>'
