"""The headers of an answer or error that say how the call was routed."""

from __future__ import annotations

from routing_admin.core.fallback.chain import Attempt
from routing_admin.dispatch.recorded import failure_headers, headers_of_attempts

SKIPPED, FAILED, OK = Attempt("a", "m", "skipped_cannot_read"), Attempt("b", "m", "http_503"), Attempt("c", "图", "ok")


def test_answer_headers_name_the_answering_and_the_skipped_candidates() -> None:
    assert headers_of_attempts([SKIPPED, FAILED, OK]) == {
        "x-routing-provider": "c",
        "x-routing-model": "%E5%9B%BE",
        "x-routing-attempts": "3",
        "x-routing-skipped": "a/m=cannot_read",
    }
    assert "x-routing-skipped" not in headers_of_attempts([OK])


def test_error_headers_give_the_attempt_count_if_there_were_attempts() -> None:
    assert failure_headers([SKIPPED, FAILED]) == {"x-routing-attempts": "2", "x-routing-skipped": "a/m=cannot_read"}
    assert failure_headers([FAILED]) == {"x-routing-attempts": "1"}
    assert failure_headers([]) == {}
