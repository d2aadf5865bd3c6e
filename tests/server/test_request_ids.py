"""The server generates a request id if the caller sends none."""

from __future__ import annotations

import re

from routing_admin.platform.server.request_id import REQUEST_ID, new_id


def test_generated_request_ids_are_sorted_by_second_and_unique() -> None:
    seconds = [1_000_000_000.9, 1_700_000_000.0, 1_700_000_001.5, 1_795_000_000.0, 4_000_000_000.0]
    ids = [new_id("req_", moment) for moment in seconds]
    assert ids == sorted(ids)
    assert len({new_id("req_", 1.0) for _ in range(1000)}) == 1000
    assert all(REQUEST_ID.fullmatch(request_id) and re.fullmatch("req_[0-9a-f]{24}", request_id) for request_id in ids)
    assert new_id("req_", 1_700_000_000.0).startswith("req_6553f100")
