"""A webhook receiver on the loopback interface. Test modules that need another webhook URL override the fixture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from routing_admin.core.alerts.webhook import parse_webhook
from tests.engines.webhook import WebhookReceiver, running_receiver


@pytest.fixture
def receiver(settings: Any) -> Iterator[WebhookReceiver]:
    with running_receiver() as server:
        settings.ALERT_WEBHOOK = parse_webhook(server.base + "/hook")
        yield server
