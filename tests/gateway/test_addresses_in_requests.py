"""A URL in a request is passed on or replaced by a description. The gateway never fetches it."""

from __future__ import annotations

import socket

import pytest

from tests.capabilities.disguises import disguised_urls
from tests.cast import create_key
from tests.gateway.plane import chat_body, image, post

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


@pytest.mark.parametrize("agent", ["text-agent", "vision-agent"])
def test_image_url_is_never_fetched_by_the_gateway(demo, agent):
    key = create_key(agent)
    with socket.create_server(("127.0.0.1", 0)) as trap:
        trap.setblocking(False)
        urls = disguised_urls(f"127.0.0.1:{trap.getsockname()[1]}")
        answers = [post(key, chat_body(image(url), model="task:design")) for url in urls]
        assert {answer.status_code for answer in answers} == {200, 400}
        with pytest.raises(BlockingIOError):
            trap.accept()
