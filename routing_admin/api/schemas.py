# ruff: noqa: N815 - JSON keys are camelCase
"""JSON schemas for routing, configuration, requests and usage in the agents' API."""

from __future__ import annotations

from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict

from capabilities.access import Principal
from routing_admin.api.calls import AgentKeyAuth, CallError
from routing_admin.limits.reservations import LimitReachedError, limit_headers, make_reservation

JsonObject = dict[str, object]


class RouteOut(BaseModel):
    """A task route, with all fields of llm-routing.json."""

    model_config = ConfigDict(extra="allow")

    taskType: str
    provider: str
    fallback: list[str | JsonObject]


class RoutesOut(BaseModel):
    """Task routes in their configured order."""

    routes: list[RouteOut]


class ProviderOut(BaseModel):
    """A provider and whether it can be called; if not, `reason` says why."""

    providerName: str
    protocol: str
    endpoint: str
    defaultModel: str
    enabled: bool
    usable: bool
    reason: str = ""


class ProvidersOut(BaseModel):
    """Providers in their configured order."""

    providers: list[ProviderOut]


class ImportOut(BaseModel):
    """The result of an import; with `dryRun`, the result that the import would have."""

    revision: int | None
    changes: list[dict[str, str]]
    problems: list[dict[str, str]]
    keptUnknown: list[str]
    dryRun: bool = False
    consequences: list[dict[str, str]] = []


class AttemptOut(BaseModel):
    """The outcome of the attempt with one candidate."""

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
    """Generated media: an artifact of this installation, or a URL of the provider."""

    kind: str
    mimeType: str
    size: int | None
    artifactRef: str | None
    url: str | None


class SendOut(BaseModel):
    """An answer, the model that gave it, and every attempt."""

    content: str
    provider: str
    model: str
    taskType: str
    language: str
    usage: JsonObject
    finishReason: str
    attempts: list[AttemptOut]
    media: list[MediaOut] = []
    annotations: list[JsonObject] = []


class CandidateOut(BaseModel):
    """The expected outcome for one candidate."""

    provider: str
    model: str
    temperature: float | None
    maxTokens: int | None
    outcome: str
    reason: str


class ResolveOut(BaseModel):
    """A routing decision made without calling a provider."""

    taskType: str
    matched: bool
    language: str
    directive: str
    candidates: list[CandidateOut]


class CostOut(BaseModel):
    """An exact decimal amount, with its three-letter currency; `saved` is the amount saved by cached tokens."""

    amount: str
    saved: str
    currency: str


class MoneyOut(BaseModel):
    amount: str
    currency: str


class ExchangeRateOut(BaseModel):
    """The value of one unit of a currency in another, as set by an administrator."""

    currency: str
    into: str
    rate: str
    day: str
    source: str


class UsageCostOut(CostOut):
    """Cost of a usage group in one currency; `failedAttempts` is the part spent on failed calls."""

    failedAttempts: str


class UsageCountsOut(BaseModel):
    """Counts of a usage group.

    `failures`, `refused` and `cancelled` count the `requests` that ended this way; all others were answered. `attempts`
    is the number of candidates that were called, `unpriced` the number of requests without a known price.
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
    """Usage of one group. `cost` maps currencies to amounts; `converted` is their total, null if a rate is unknown."""

    key: str
    unknownCost: int
    cost: dict[str, str]
    converted: MoneyOut | None


class UsageGroupOut(UsageCountsOut):
    """Usage of one group in the older format: `costs` lists amounts by currency; `cost` is the total."""

    name: str
    costs: list[UsageCostOut]
    cost: MoneyOut | None


class UsageOut(BaseModel):
    """Usage of the calling agent from `since` to `until` (exclusive), in total and by group."""

    since: str
    until: str
    groupBy: str
    rows: list[UsageRowOut]
    total: UsageGroupOut
    groups: list[UsageGroupOut]
    exchangeRates: list[ExchangeRateOut]


class RequestHeadOut(BaseModel):
    """A request's metadata; times are in milliseconds from its start."""

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
    usage: JsonObject
    cost: CostOut | None


class RequestFileOut(BaseModel):
    """A file in a request, and how it was delivered to the last candidate that was called."""

    kind: str
    filename: str | None
    mimeType: str
    size: int | None
    ref: str | None
    outcome: str


class ListedRequestOut(RequestHeadOut):
    """A request in a list; `attempts` is the number of candidates that were called."""

    attempts: int
    files: list[RequestFileOut]


class RequestsOut(BaseModel):
    """A page of requests, newest first; `nextCursor` is null on the last page."""

    requests: list[ListedRequestOut]
    nextCursor: str | None


class LoggedAttemptOut(AttemptOut):
    """A logged attempt: `tries` is the number of calls, `deliveries` says how each file was delivered."""

    startedMs: float
    firstContentMs: float | None
    tries: list[JsonObject]
    deliveries: list[JsonObject]
    droppedParams: list[str]
    usage: JsonObject
    cost: MoneyOut | None


class RequestOut(RequestHeadOut):
    """A logged request with its attempts."""

    matched: bool
    language: str
    error: str | None
    answer: JsonObject | None
    adaptation: str
    revision: int | None
    attempts: list[LoggedAttemptOut]


# Agents' limits also apply to calls of this API: each POST or PUT counts as one request of its body's size.

COUNTED = frozenset({"POST", "PUT"})
OWN_COUNT = frozenset({"/api/v1/llm/send"})
"""Calls that use a model. They reserve their usage themselves, including tokens, without blocking a thread."""


class LimitedKeyAuth(AgentKeyAuth):
    """`AgentKeyAuth` that also enforces the agent's limits."""

    def __call__(self, request: HttpRequest) -> Principal:
        # This raises the base class's errors, 429 if a limit is reached, and 503 if the limits cannot be checked.
        principal = super().__call__(request)
        if not principal.holders or request.method not in COUNTED or request.path in OWN_COUNT:
            return principal
        reservation = make_reservation(principal.holders)
        if reservation is not None:
            try:
                # Only the request and its bytes are counted, so the reservation can be closed immediately.
                reservation.enter_in_thread(request_size(request))
            except LimitReachedError as error:
                raise limit_call_error(error) from None
            finally:
                reservation.close()
        return principal


def request_size(request: HttpRequest) -> int:
    length = request.META.get("CONTENT_LENGTH") or ""
    return int(length) if length.isdigit() else 0


def limit_call_error(error: LimitReachedError) -> CallError:
    call_error = CallError(error.status, error.code, error.message)
    call_error.headers = limit_headers(error)
    return call_error
