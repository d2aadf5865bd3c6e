"""The states of keys, tokens and links, which can expire or be revoked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from capabilities.core.validity import Validity, judge_validity

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("revoked", "ends_in_days", "is_used", "state"),
    [
        (False, None, True, Validity.WORKING),
        (False, None, False, Validity.UNUSED),
        (False, 8, True, Validity.WORKING),
        (False, 7, True, Validity.ENDING),
        (False, 7, False, Validity.ENDING),
        (False, 0, True, Validity.EXPIRED),
        (True, 8, True, Validity.REVOKED),
        (True, -1, False, Validity.REVOKED),
    ],
)
def test_credential_state_depends_on_revocation_use_and_expiry_within_a_week(
    revoked: bool, ends_in_days: int | None, is_used: bool, state: Validity
) -> None:
    expires_at = None if ends_in_days is None else NOW + timedelta(days=ends_in_days)
    found = judge_validity(
        revoked_at=NOW if revoked else None, expires_at=expires_at, used_at=NOW if is_used else None, now=NOW
    )
    assert found is state
    assert found.works is (state in (Validity.WORKING, Validity.UNUSED, Validity.ENDING))
