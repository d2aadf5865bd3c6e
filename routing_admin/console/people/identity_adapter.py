"""The one module that knows the package for signing in elsewhere: it speaks with the provider, our pages decide.

It is imported only where a provider is configured, since the package's rows exist only then.
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

from routing_admin.core.identity.admission import Identity
from routing_admin.core.identity.providers import IdentityProvider

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How somebody came back from a provider: with an identity and what was noted on the way there, or without.

    `cause` says why without: cancelled, stale or failed.
    """

    identity: Identity | None
    cause: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)
    after: str = ""


class _Handover(HttpResponse):
    """An answer that nobody gets: it carries an arrival out of the package."""

    def __init__(self, arrival: Arrival) -> None:
        super().__init__()
        self.arrival = arrival


class IdentityAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Hands over to our pages as soon as the provider has said who it is, or that it did not work."""

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Raises `ImmediateHttpResponse` with the arrival."""
        state = sociallogin.state
        arrival = Arrival(_identity_of(sociallogin), notes=state.get("data") or {}, after=state.get("next") or "")
        raise ImmediateHttpResponse(_Handover(arrival))

    def on_authentication_error(
        self, request: HttpRequest, provider: Any, error: Any = None, exception: Any = None, extra_context: Any = None
    ) -> None:
        """Raises `ImmediateHttpResponse` with an arrival without an identity."""
        if exception is not None:
            log.warning("signing in with %s failed: %s", provider.id, type(exception).__name__)
        knows_attempt = bool((extra_context or {}).get("state"))
        raise ImmediateHttpResponse(_Handover(Arrival(None, "failed" if knows_attempt else "stale")))

    def get_requests_session(self) -> Any:
        """One that goes out as all our calls do."""
        session = super().get_requests_session()
        if settings.OUTGOING_PROXY:
            session.proxies = {"http": settings.OUTGOING_PROXY, "https": settings.OUTGOING_PROXY}
        return session


class FeishuClient(FeishuOAuth2Client):  # type: ignore[misc]
    """Exchanges a code with Feishu, all of whose calls take JSON."""

    def app_access_token(self) -> str:
        """The application's own token. Raises `OAuth2Error`, `OSError`."""
        body = {"app_id": self.consumer_key, "app_secret": self.consumer_secret}
        with get_adapter().get_requests_session() as session:
            answer = session.post(self.app_access_token_url, json=body)
            answer.raise_for_status()
        token = answer.json().get("app_access_token")
        if not token:
            raise OAuth2Error("Feishu gave no token for the application.")
        return str(token)


class FeishuExchange(FeishuOAuth2Adapter):  # type: ignore[misc]
    """The package's, with a client that sends JSON."""

    def get_client(self, request: HttpRequest, app: Any) -> FeishuClient:
        """The client of one exchange."""
        usual = super().get_client(request, app)
        method, address = self.access_token_method, self.access_token_url
        return FeishuClient(request, app.client_id, app.secret, method, address, usual.callback_url)


class WeixinExchange(WeixinOAuth2Adapter):  # type: ignore[misc]
    """The package's, asking for the token as Weixin's page says."""

    access_token_method = "GET"  # noqa: S105 - a method of HTTP


VENDORS = {"feishu": FeishuExchange, "weixin": WeixinExchange}
"""Where a vendor's page says otherwise than the package does."""


def find_provider_address(
    request: HttpRequest, configured: IdentityProvider, notes: Mapping[str, str], after: str
) -> str:
    """Where the browser goes to sign in, with a state that is this session's; `notes` come back with the person.

    Raises `OSError` when the provider does not say where, or does not answer.
    """
    provider = get_adapter(request).get_provider(request, _word_of(configured))
    try:
        answer = provider.redirect(request, "login", next_url=after or None, data=dict(notes) or None)
    except (OSError, KeyError, ValueError) as error:
        log.warning("signing in with %s failed: %s", configured.id, type(error).__name__)
        raise OSError(f"{configured.id} does not say where to sign in") from error
    if isinstance(answer, _Handover):
        raise OSError(f"{configured.id} does not say where to sign in")
    return str(answer["Location"])


def receive(request: HttpRequest, configured: IdentityProvider) -> Arrival:
    """How somebody came back whom we had sent there."""
    if request.GET.get("error") == "access_denied":  # some send it without the state
        return Arrival(None, "cancelled")
    provider = get_adapter(request).get_provider(request, _word_of(configured))
    exchange = VENDORS.get(configured.id, provider.get_oauth2_adapter)(request)
    view = OAuth2CallbackView.adapter_view(exchange)
    try:
        answer = view(request)
    except (OSError, LookupError, TypeError, ValueError) as error:  # an answer that is none
        log.warning("signing in with %s failed: %s", configured.id, type(error).__name__)
        return Arrival(None, "failed")
    return answer.arrival if isinstance(answer, _Handover) else Arrival(None, "failed")


def _identity_of(sociallogin: Any) -> Identity:
    """Who the provider says it is."""
    user, account = sociallogin.user, sociallogin.account
    emails = [each.email for each in sociallogin.email_addresses if each.verified]
    name = " ".join(word for word in (user.first_name, user.last_name) if word)
    return Identity(
        provider=account.provider,
        subject=str(account.uid),
        username=user.username or "",
        name=name,
        email=emails[0] if emails else "",
    )


def _word_of(configured: IdentityProvider) -> str:
    """The package's word for a provider."""
    return configured.id if configured.kind == "openid_connect" else configured.kind
