# ruff: noqa: N815 - JSON keys are camelCase
"""The JSON that the agents' API answers about routing, the configuration and requests (CONTRACT §4)."""

from __future__ import annotations

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict

from capabilities.access import Principal
from routing_admin.api.calls import AgentKeyAuth, CallError
from routing_admin.limits.reservations import LimitReachedError, limit_headers, reservation_of

Thing = dict[str, object]


class RouteOut(BaseModel):
    """A task route, written as in llm-routing.json with all that it says."""

    model_config = ConfigDict(extra="allow")

    taskType: str
    provider: str
    fallback: list[str | Thing]


class RoutesOut(BaseModel):
    """Task routes in their order."""

    routes: list[RouteOut]


class ProviderOut(BaseModel):
    """A provider, and whether it can be called; `reason` says why not."""

    providerName: str
    protocol: str
    endpoint: str
    defaultModel: str
    enabled: bool
    usable: bool
    reason: str = ""


class ProvidersOut(BaseModel):
    """Providers in their order."""

    providers: list[ProviderOut]


class ImportOut(BaseModel):
    """What an import did, or with `dryRun` would do."""

    revision: int | None
    changes: list[dict[str, str]]
    problems: list[dict[str, str]]
    keptUnknown: list[str]
    dryRun: bool = False
    consequences: list[dict[str, str]] = []


class AttemptOut(BaseModel):
    """The outcome of one candidate."""

    provider: str
    model: str
    outcome: str
    retryAttempts: int
    durationMs: float
    statusCode: int | None = None
    error: str | None = None
    adaptation: str | None = None
    droppedParams: list[str] = []


class MediaOut(BaseModel):
    """What a model made beside its words: an artifact here, or a URL of the provider's."""

    kind: str
    mimeType: str
    size: int | None
    artifactRef: str | None
    url: str | None


class SendOut(BaseModel):
    """An answer, who gave it, and every attempt on the way."""

    content: str
    provider: str
    model: str
    taskType: str
    language: str
    usage: Thing
    finishReason: str
    attempts: list[AttemptOut]
    media: list[MediaOut] = []
    annotations: list[Thing] = []


class CandidateOut(BaseModel):
    """One candidate's prospect."""

    provider: str
    model: str
    temperature: float | None
    maxTokens: int | None
    outcome: str
    reason: str


class ResolveOut(BaseModel):
    """A decision without a call."""

    taskType: str
    matched: bool
    language: str
    directive: str
    candidates: list[CandidateOut]


class CostOut(BaseModel):
    """Money as exact decimal text, in a currency by its three letters; what the provider's cache saved beside it."""

    amount: str
    saved: str
    currency: str


class MoneyOut(BaseModel):
    """An amount as exact decimal text."""

    amount: str
    currency: str


class ExchangeRateOut(BaseModel):
    """What one unit of a currency is in another, as an administrator set it."""

    currency: str
    into: str
    rate: str
    day: str
    source: str


class UsageCostOut(CostOut):
    """The sum of a group in one currency; `failedAttempts` is the part of it spent on calls without an answer."""

    failedAttempts: str


class UsageCountsOut(BaseModel):
    """What was counted. Of `requests`, `failures`, `refused` and `cancelled` are those that ended so; the rest was
    answered. `attempts` are the candidates they reached, `unpriced` the requests without a known price.
    """

    requests: int
    attempts: int
    failures: int
    refused: int
    cancelled: int
    fallbacks: int
    unpriced: int
    promptTokens: int
    completionTokens: int
    cachedTokens: int
    reasoningTokens: int


class UsageRowOut(UsageCountsOut):
    """One group: `cost` by currency, never added; `converted` is all of it in one, where each has an exchange rate."""

    key: str
    unknownCost: int
    cost: dict[str, str]
    converted: MoneyOut | None


class UsageGroupOut(UsageCountsOut):
    """The same as earlier versions wrote it: `costs` has one entry a currency, `cost` is all of them in one."""

    name: str
    costs: list[UsageCostOut]
    cost: MoneyOut | None


class UsageOut(BaseModel):
    """What the calling agent used from `since` until before `until`, in total and by group."""

    since: str
    until: str
    groupBy: str
    rows: list[UsageRowOut]
    total: UsageGroupOut
    groups: list[UsageGroupOut]
    exchangeRates: list[ExchangeRateOut]


class RequestHeadOut(BaseModel):
    """What is known of a request; times in milliseconds from its start."""

    id: str
    agent: str
    startedAt: str
    surface: str
    model: str
    taskType: str
    stream: bool
    outcome: str
    status: int | None
    answeredBy: dict[str, str] | None
    durationMs: float
    firstContentMs: float | None
    usage: Thing
    cost: CostOut | None


class RequestFileOut(BaseModel):
    """A file of a request, and how it went to the last candidate that got it."""

    kind: str
    filename: str | None
    mimeType: str
    size: int | None
    ref: str | None
    outcome: str


class ListedRequestOut(RequestHeadOut):
    """A request in a page; `attempts` are the candidates that it reached."""

    attempts: int
    files: list[RequestFileOut]


class RequestsOut(BaseModel):
    """A page of requests, newest first; `nextCursor` is null on the last one."""

    requests: list[ListedRequestOut]
    nextCursor: str | None


class LoggedAttemptOut(AttemptOut):
    """An attempt as it was logged: `tries` are its calls, `deliveries` say how each file went to the model."""

    startedMs: float
    firstContentMs: float | None
    tries: list[Thing]
    deliveries: list[Thing]
    droppedParams: list[str]
    usage: Thing
    cost: MoneyOut | None


class RequestOut(RequestHeadOut):
    """A logged request with its attempts."""

    matched: bool
    language: str
    error: str | None
    answer: Thing | None
    adaptation: str
    revision: int | None
    attempts: list[LoggedAttemptOut]


# An agent's limits on the calls of its API: each that brings something counts as a request and by its bytes.

COUNTED = frozenset({"POST", "PUT"})
OWN_COUNT = frozenset({"/api/v1/llm/send"})
"""Calls that ask a model: they reserve more, and wait without holding a thread."""


class LimitedKeyAuth(AgentKeyAuth):
    """`AgentKeyAuth`, which lets in no more than the agent's limits do."""

    def __call__(self, request: HttpRequest) -> Principal:
        """Who calls. Raises `CallError`, also 429 where a limit is reached, and 503 where nobody can say."""
        principal = super().__call__(request)
        if not principal.holders or request.method not in COUNTED or request.path in OWN_COUNT:
            return principal
        hold = reservation_of(principal.holders)
        if hold is not None:
            try:
                hold.enter_in_thread(size_of(request))
            except LimitReachedError as error:
                raise call_error_of(error) from None
            finally:
                hold.close()
        return principal


def size_of(request: HttpRequest) -> int:
    """How many bytes the request says that its body has."""
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isdigit() else 0


def call_error_of(error: LimitReachedError) -> CallError:
    """What an agent's limits do not let in, for a caller of this API."""
    refused = CallError(error.status, error.code, error.message)
    refused.headers = limit_headers(error)
    return refused
