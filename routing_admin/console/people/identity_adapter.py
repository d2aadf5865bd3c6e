"""Adapter for django-allauth, which calls the identity providers. This project's own code handles the results.

Import this module only if an identity provider is configured; otherwise, allauth's tables do not exist.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter, get_adapter
from allauth.socialaccount.providers.feishu.client import FeishuOAuth2Client
from allauth.socialaccount.providers.feishu.views import FeishuOAuth2Adapter
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.weixin.views import WeixinOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from routing_admin.core.identity import Identity, IdentityProvider

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallbackResult:
    """The result of an identity provider's callback: an identity, or a failure.

    `notes` are those that were passed to `find_provider_address` before the sign-in. The `cause` of a failure is
    `cancelled`, `stale` or `failed`.
    """

    identity: Identity | None
    cause: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    after: str = ""


class _CallbackResponse(HttpResponse):
    """A response that is never sent, but carries a `CallbackResult` out of allauth's view."""

    def __init__(self, arrival: CallbackResult) -> None:
        super().__init__()
        self.arrival = arrival


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Stops allauth's flow once the identity provider has responded, and passes the result to our own views."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        state = sociallogin.state
        arrival = CallbackResult(
            _read_identity(sociallogin), notes=state.get("data") or {}, after=state.get("next") or ""
        )
        # Only an exception can stop allauth, which would otherwise find or create a user itself.
        raise ImmediateHttpResponse(_CallbackResponse(arrival))

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        if exception is not None:
            log.warning("signing in with %s failed: %s", provider.id, type(exception).__name__)
        # If the state is unknown, the callback does not belong to a sign-in that began on this site: the link is old or
        # forged.
        knows_attempt = bool((extra_context or {}).get("state"))
        raise ImmediateHttpResponse(_CallbackResponse(CallbackResult(None, "failed" if knows_attempt else "stale")))

    def get_requests_session(self) -> Any:
        session = super().get_requests_session()
        # Like all outgoing calls, allauth's calls use the installation's proxy.
        if settings.OUTGOING_PROXY:
            session.proxies = {"http": settings.OUTGOING_PROXY, "https": settings.OUTGOING_PROXY}
        return session


class FeishuClient(FeishuOAuth2Client):  # type: ignore[misc]
    """Exchanges a code for a token at Feishu, where all endpoints expect JSON."""

    def app_access_token(self) -> str:
        """Return the application's access token. Raise `OAuth2Error` or `OSError` if Feishu does not issue one."""
        body = {"app_id": self.consumer_key, "app_secret": self.consumer_secret}
        with get_adapter().get_requests_session() as session:
            answer = session.post(self.app_access_token_url, json=body)
            answer.raise_for_status()
        token = answer.json().get("app_access_token")
        if not token:
            raise OAuth2Error("Feishu gave no token for the application.")
        return str(token)


class FeishuExchange(FeishuOAuth2Adapter):  # type: ignore[misc]
    """allauth's adapter for Feishu, with a client that sends JSON."""

    def get_client(self, request: HttpRequest, app: Any) -> FeishuClient:
        client = super().get_client(request, app)
        method, address = self.access_token_method, self.access_token_url
        return FeishuClient(request, app.client_id, app.secret, method, address, client.callback_url)


class WeixinExchange(WeixinOAuth2Adapter):  # type: ignore[misc]
    """allauth's adapter for Weixin, changed to request the token with GET, as Weixin documents."""

    access_token_method = "GET"  # noqa: S105 - a method of HTTP


VENDORS = {"feishu": FeishuExchange, "weixin": WeixinExchange}
"""Adapters for vendors whose documented API differs from what allauth implements."""


def find_provider_address(
    request: HttpRequest, configured: IdentityProvider, notes: Mapping[str, str], after: str
) -> str:
    """Return the identity provider's sign-in URL, with a state that is bound to this session.

    The callback's result contains `notes`. Raise `OSError` if the provider is unreachable or names no sign-in URL.
    """
    provider = get_adapter(request).get_provider(request, _provider_id(configured))
    try:
        answer = provider.redirect(request, "login", next_url=after or None, data=dict(notes) or None)
    except (OSError, KeyError, ValueError) as error:
        log.warning("signing in with %s failed: %s", configured.id, type(error).__name__)
        raise OSError(f"{configured.id} does not say where to sign in") from error
    if isinstance(answer, _CallbackResponse):
        raise OSError(f"{configured.id} does not say where to sign in")
    return str(answer["Location"])


def run_callback(request: HttpRequest, configured: IdentityProvider) -> CallbackResult:
    if request.GET.get("error") == "access_denied":  # Some providers omit the state if the user cancels.
        return CallbackResult(None, "cancelled")
    provider = get_adapter(request).get_provider(request, _provider_id(configured))
    exchange = VENDORS.get(configured.id, provider.get_oauth2_adapter)(request)
    view = OAuth2CallbackView.adapter_view(exchange)
    try:
        answer = view(request)
    except (OSError, LookupError, TypeError, ValueError) as error:  # The call failed, or the response is malformed.
        log.warning("signing in with %s failed: %s", configured.id, type(error).__name__)
        return CallbackResult(None, "failed")
    return answer.arrival if isinstance(answer, _CallbackResponse) else CallbackResult(None, "failed")


def _read_identity(sociallogin: Any) -> Identity:
    user, account = sociallogin.user, sociallogin.account
    # An unverified email address could belong to another person.
    emails = [address.email for address in sociallogin.email_addresses if address.verified]
    name = " ".join(word for word in (user.first_name, user.last_name) if word)
    return Identity(
        provider=account.provider,
        subject=str(account.uid),
        username=user.username or "",
        name=name,
        email=emails[0] if emails else "",
    )


def _provider_id(configured: IdentityProvider) -> str:
    return configured.id if configured.kind == "openid_connect" else configured.kind
