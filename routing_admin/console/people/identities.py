"""Views that sign users in with an external account, or link such an account to a user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from capabilities.access import request_actor
from capabilities.errors import ConflictError, NotFoundError
from capabilities.sentences import join_words
from routing_admin.console.people import identity_actions as identities
from routing_admin.console.people.account import BACKEND
from routing_admin.console.people.language import remember_language
from routing_admin.console.people.queries import find_language, find_user, find_user_by_link
from routing_admin.console.people.signin import build_visitor
from routing_admin.core.identity import KINDS, OIDC, Admission, Identity, IdentityProvider

CALLBACKS: tuple[tuple[str, dict[str, str], str], ...] = tuple(
    ("sign-in/<str:provider_id>/callback/", {}, "openid_connect_callback")
    if word == OIDC
    else (f"sign-in/{word}/callback/", {"provider_id": word}, f"{kind}_callback")
    for word, (kind, _name) in sorted(KINDS.items(), key=lambda item: item[0] == OIDC)
)
"""The callback URL of each identity provider, under the URL name that allauth expects."""


@require_POST
def sign_in_with(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the browser to the identity provider. Raise `Http404` if the provider is not configured."""
    configured = provider_or_404(provider_id)
    from routing_admin.console.people import identity_adapter

    notes = {name: request.POST[name] for name in ("uid", "token") if request.POST.get(name)}
    if request.user.is_authenticated:
        notes = {"user": str(request.user.pk)}
    try:
        address = identity_adapter.find_provider_address(request, configured, notes, request.POST.get("next", ""))
    except OSError:
        return _explain_failure(request, configured, "failed")
    # The content security policy does not allow forms to redirect to other sites, so a page of this site redirects the
    # browser instead.
    response = render(request, "registration/identity_continue.html", {"provider": configured, "address": address})
    response.headers["Refresh"] = f"0; url={address}"
    return response


@never_cache
@require_safe
def sign_in_back(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Sign in the user whom the identity provider identified. Raise `Http404` if the provider is not configured."""
    configured = provider_or_404(provider_id)
    from routing_admin.console.people import identity_adapter

    arrival = identity_adapter.run_callback(request, configured)
    if arrival.identity is None:
        # Failures with other causes are not audited, because anyone who knows the URL can provoke them.
        if arrival.cause == "failed":
            identities.record_failure(build_visitor(request), configured.id)
        return _explain_failure(request, configured, arrival.cause)
    return _sign_in(request, arrival.identity, arrival.notes, arrival.after)


@require_POST
def identity_unlink(request: HttpRequest, pk: int) -> HttpResponse:
    assert isinstance(request.user, User)  # noqa: S101 - the permission table admits only signed-in users
    try:
        name = identities.unlink(request_actor(request), request.user.pk, pk)
    except NotFoundError as error:
        raise Http404 from error
    except ConflictError as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, _("You can no longer sign in with %(name)s") % {"name": name})
    return redirect("password_change")


def provider_or_404(provider_id: str) -> IdentityProvider:
    configured: IdentityProvider | None = settings.IDENTITY.find(provider_id)
    if configured is None:
        raise Http404
    return configured


def _sign_in(request: HttpRequest, identity: Identity, notes: Mapping[str, str], after: str) -> HttpResponse:
    rules = settings.IDENTITY
    claimant = _find_claimant(request, notes)
    if notes and claimant is None:
        return render(request, "registration/link_spent.html", status=410)
    admission, user = identities.admit(build_visitor(request), identity, claimant, rules.newcomers, rules.domains)
    if user is None:
        return render(request, "registration/identity_refused.html", _explain(admission, identity), status=403)
    if "user" in notes:
        messages.success(request, _("You can now sign in with %(name)s, too") % {"name": identity.title})
        return redirect("password_change")
    login(request, user, backend=BACKEND)
    identities.record_admission(build_visitor(request), user, identity)
    response = redirect(after if _is_local(request, after) else settings.LOGIN_REDIRECT_URL)
    remember_language(response, find_language(user))
    return response


def _explain_failure(request: HttpRequest, provider: IdentityProvider, cause: str) -> HttpResponse:
    status = 502 if cause == "failed" else 400
    page = {"provider": provider.name, "cause": cause}
    return render(request, "registration/identity_failed.html", page, status=status)


def _find_claimant(request: HttpRequest, notes: Mapping[str, str]) -> User | None:
    # The external account is claimed by a signed-in user who links it, or by the holder of an invitation link.
    if "user" in notes:
        return find_user(request.user.pk) if str(request.user.pk) == notes["user"] else None
    return find_user_by_link(notes["uid"], notes["token"]) if "uid" in notes and "token" in notes else None


def _explain(admission: Admission, identity: Identity) -> dict[str, Any]:
    return {"reason": admission.value, "account": identity.title, "domains": join_words(settings.IDENTITY.domains)}


def _is_local(request: HttpRequest, address: str) -> bool:
    return bool(address) and url_has_allowed_host_and_scheme(
        address, {request.get_host()}, require_https=request.is_secure()
    )
