"""Who may sign in with an external account, and what names new users get."""

from __future__ import annotations

import pytest

from routing_admin.core.identity import Admission, Identity, Owner, decide_admission, suggest_username

INES = Identity(provider="oidc", subject="ines-1", username="ines", name="Ines B", email="ines@example.com")
ACTIVE, GONE = Owner(7, True), Owner(7, False)


@pytest.mark.parametrize(
    ("owner", "claimant", "newcomers", "domains", "admission"),
    [
        (ACTIVE, None, False, (), Admission.SIGN_IN),
        (ACTIVE, 7, False, (), Admission.SIGN_IN),
        (ACTIVE, 8, True, (), Admission.OF_ANOTHER),
        (GONE, None, True, (), Admission.DEACTIVATED),
        (GONE, 7, True, (), Admission.DEACTIVATED),
        (None, 8, False, (), Admission.LINK),
        (None, 8, False, ("elsewhere.com",), Admission.LINK),
        (None, None, False, (), Admission.NOT_INVITED),
        (None, None, True, (), Admission.CREATE),
        (None, None, True, ("example.com",), Admission.CREATE),
        (None, None, True, ("elsewhere.com",), Admission.OTHER_DOMAIN),
    ],
)
def test_invitation_linked_account_or_newcomer_rules_decide_the_admission(
    owner, claimant, newcomers, domains, admission
):
    """A user with an invitation or a linked account is admitted. For all others, the rules for new users apply."""
    assert decide_admission(INES, owner, claimant, newcomers=newcomers, domains=domains) is admission


@pytest.mark.parametrize("email", ["", "ines@notexample.com", "ines@example.com.evil.net", "example.com"])
def test_admission_by_domain_requires_the_exact_domain_of_a_verified_address(email):
    identity = Identity(provider="oidc", subject="x", email=email)
    assert decide_admission(identity, None, None, newcomers=True, domains=("example.com",)) is Admission.OTHER_DOMAIN


@pytest.mark.parametrize(
    ("identity", "name"),
    [
        (INES, "ines"),
        (Identity(provider="oidc", subject="1", username="", name="", email="otto.b@example.com"), "otto.b"),
        (Identity(provider="feishu", subject="ou_1", username="", name="王 小明"), "王-小明"),
        (Identity(provider="weixin", subject="o1", username="🙂", name=""), "weixin"),
        (Identity(provider="oidc", subject="1", username="x" * 400), "x" * 145),
    ],
)
def test_user_name_is_suggested_from_the_identity_providers_data(identity, name):
    """The user name contains only allowed characters, and leaves room for a number."""
    assert suggest_username(identity) == name
