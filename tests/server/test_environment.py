"""If a number in the environment is invalid, the server exits with an error message instead of a traceback."""

from __future__ import annotations

import pytest

from routing_admin.environment import Environment

NAME = "ROUTING_ADMIN_MAX_CALLS"


@pytest.mark.parametrize(
    ("read", "sentence"),
    [("int", "ROUTING_ADMIN_MAX_CALLS: 'many' is not a whole number."), ("float", "'many' is not a number.")],
)
def test_invalid_number_in_the_environment_stops_startup_with_an_error(
    monkeypatch: pytest.MonkeyPatch, read: str, sentence: str
) -> None:
    monkeypatch.setenv(NAME, "many")
    with pytest.raises(SystemExit, match=sentence):
        getattr(Environment(), read)(NAME, default=1)
    monkeypatch.setenv(NAME, "7")
    assert getattr(Environment(), read)(NAME, default=1) == 7
