"""What every test shares: Hypothesis profiles and the slow switch."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("default", max_examples=200, deadline=None, suppress_health_check=QUIET)
settings.register_profile("slow", max_examples=2000, deadline=None, suppress_health_check=QUIET)
settings.register_profile("quick", max_examples=25, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run tests marked slow, too")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow"))


@pytest.fixture(autouse=True)
def _fresh_snapshot(request: pytest.FixtureRequest) -> Iterator[None]:
    """Rows are rolled back behind the snapshot's back, so no test sees another's."""
    yield
    if (
        "db" in request.fixturenames
        or "transactional_db" in request.fixturenames
        or "django_db_setup" in request.fixturenames
    ):
        from routing_admin.configuration import snapshot

        snapshot.forget()
