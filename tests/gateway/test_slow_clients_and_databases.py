"""Sending to a client that reads too slowly times out. If the database does not answer, the caller gets an error."""

from __future__ import annotations

import asyncio
import json

import pytest
from django.db import OperationalError
from django.http import HttpResponse
from django.test import RequestFactory

from routing_admin.asgi import limit_slow_readers
from routing_admin.gateway.admission import open_endpoint


async def test_send_to_a_slow_reader_times_out():
    never = asyncio.Event()
    sent = []

    async def send(message):
        sent.append(message)
        if len(sent) == 2:
            await never.wait()

    sending = limit_slow_readers(send, seconds=0.01)
    await sending({"type": "http.response.start"})
    with pytest.raises(TimeoutError):
        await sending({"type": "http.response.body"})


LOCKED = OperationalError("database is locked")


@pytest.mark.parametrize(("fault", "status", "retry"), [(LOCKED, 503, "true"), (ZeroDivisionError(), 500, "false")])
def test_exception_in_the_gateway_becomes_an_error_response_without_details(fault, status, retry):
    """A locked database is reported as a 503 with Retry-After, any other exception as a 500.

    Neither message contains the exception's text.
    """

    @open_endpoint("GET")
    def view(request) -> HttpResponse:
        raise fault

    response = view(RequestFactory().get("/v1/models"))
    assert (response.status_code, response.headers["x-should-retry"]) == (status, retry)
    assert str(fault) not in json.loads(response.content)["error"]["message"] or not str(fault)
    assert ("Retry-After" in response.headers) == (status == 503)
