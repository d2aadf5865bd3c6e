"""Every page is listed in one of the two tables that state how many queries a page should make."""

from __future__ import annotations

import test_query_counts
import test_routing_query_counts
from django.urls import resolve

from tests.ui.test_every_page import OUTSIDE, PAGES


def test_every_page_is_in_a_table_of_expected_query_counts() -> None:
    counted = [*test_query_counts.QUERIES, *test_routing_query_counts.QUERIES]
    names = {resolve(address.partition("?")[0].format(user=1, first=1, edition=1)).url_name for address in counted}
    assert set(PAGES) - OUTSIDE - names == set()
