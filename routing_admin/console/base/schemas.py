# ruff: noqa: N815 - JSON keys are camelCase
"""JSON schemas of the administrators' API."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from capabilities.core.services.agents import MAX_LABEL_CHARS
from routing_admin.api.errors import Body
from routing_admin.core.planning.model_names import MAX_NAME

Thing = dict[str, object]
MAX_SECONDS = 31 * 86_400
MAX_LABEL = max(MAX_LABEL_CHARS.values())
CENTURY_DAYS = 36_500
MEBIBYTE = 2**20
MAX_BYTES = 1024 * MEBIBYTE * MEBIBYTE


class EntriesOut(BaseModel):
    """Configuration entries in order, and the number of the revision that contains them."""

    revision: int = 0


class RestoreOut(EntriesOut):
    """The revision that was created by a restore or, with `dryRun`, what the restore would change."""

    dryRun: bool = False
    changes: list[str] = []
    consequences: list[dict[str, str]] = []


class AdminProvidersOut(EntriesOut):
    """Providers. Their keys appear only as references such as `${…}`."""

    providers: list[Thing]


class AdminProviderOut(EntriesOut):
    """A provider; if it cannot be called now, `usable` is false and `reason` says why.

    `state` is `ok`, `slow`, `cooling`, `failing`, `down` (no connection or no answer in time), `rejected` (the provider
    rejects its key), `not_allowed` (its address is not allowed), `no_key` or `disabled`, as on the provider's page in
    the console.
    """

    provider: Thing
    usable: bool
    state: str
    reason: str = ""


class AdminServicesOut(EntriesOut):
    """Model services in their configured order."""

    services: list[Thing]


class AdminServiceOut(EntriesOut):
    """A model service."""

    service: Thing


class AdminRoutesOut(EntriesOut):
    """Task routes."""

    routes: list[Thing]


class AdminRouteOut(EntriesOut):
    """A task route with its whole chain."""

    route: Thing


class ProviderIn(Body):
    """A provider as in llm-routing.json; docs/configuration.md lists further fields.

    If `apiKey` is omitted, the key is kept.
    """

    endpoint: str
    defaultModel: str
    apiKey: str | None = None


class ServiceIn(Body):
    """A model service as in llmservices.json, with its provider's name; docs/configuration.md lists further fields."""

    provider: str
    model: str


class RouteIn(Body):
    """A task route as in llm-routing.json; docs/configuration.md lists further fields.

    Its chain is `provider` with `model`, followed by the entries of `fallback`, each of which must name both.
    """

    provider: str


class KeyTextIn(Body):
    """A provider's key, `${LLM_PROVIDER_…_API_KEY}`, or `NOT_NEEDED`; it cannot be read back."""

    apiKey: Annotated[str, Field(min_length=1, max_length=4096)]


class ChangedOut(EntriesOut):
    """The result of a write; `changes` is empty if nothing changed."""

    created: bool = False
    changes: list[str] = []
    warnings: list[dict[str, str]] = []


class AdminAgentIn(Body):
    """An agent: its model service or its task route, and its limits as listed in docs/automation.md."""

    name: Annotated[str | None, Field(max_length=200)] = None
    description: str | None = None
    serviceId: str | None = None
    taskType: str | None = None
    limits: Thing | None = None


class AgentThing(BaseModel):
    """An agent as stored; `origin` is `administrator` or `runtime` (created over the agents' API)."""

    id: str
    name: str
    description: str
    serviceId: str | None
    taskType: str | None
    limits: Thing
    origin: str
    keys: int


class AdminAgentsOut(EntriesOut):
    """All agents, sorted by id."""

    agents: list[AgentThing]


class AdminAgentOut(EntriesOut):
    """One agent, as in `AgentThing`."""

    agent: AgentThing


class KeyThing(BaseModel):
    """An agent's key without its secret; `id` is its public part; `state` is active, expired or revoked."""

    id: str
    label: str
    scopes: list[str]
    team: str
    project: str
    limits: Thing
    state: str
    createdAt: str
    expiresAt: str | None
    lastUsedAt: str | None


class KeysOut(BaseModel):
    """The keys of an agent, newest first, with revoked keys last."""

    keys: list[KeyThing]


class KeyOut(EntriesOut):
    """One key."""

    key: KeyThing


class KeyTermsIn(Body):
    """A key's name, the labels of its calls, and its limits, which cannot exceed the agent's limits.

    Omitted labels and limits are removed. An omitted `expiresAt` is unchanged, and null means never.
    """

    label: Annotated[str | None, Field(max_length=100)] = None
    team: Annotated[str | None, Field(max_length=MAX_LABEL)] = None
    project: Annotated[str | None, Field(max_length=MAX_LABEL)] = None
    limits: Thing | None = None
    expiresAt: Annotated[str | None, Field(max_length=40)] = None


class KeyIn(Body):
    """A new key, with the terms of `KeyTermsIn`.

    Without `scopes` the key has the default scopes, and without `days` it does not expire.
    """

    label: Annotated[str | None, Field(max_length=100)] = None
    team: Annotated[str | None, Field(max_length=MAX_LABEL)] = None
    project: Annotated[str | None, Field(max_length=MAX_LABEL)] = None
    limits: Thing | None = None
    scopes: Annotated[list[str] | None, Field(min_length=1, max_length=20)] = None
    days: Annotated[int | None, Field(ge=1, le=3650)] = None


class RotateIn(Body):
    """How to replace a key: the number of seconds for which the old key remains valid."""

    overlapSeconds: Annotated[int | None, Field(ge=0, le=MAX_SECONDS)] = None


class IssuedOut(BaseModel):
    """A new key: `key` is the whole key, which is shown only once."""

    key: str
    issued: KeyThing


class LinkThing(BaseModel):
    """A link to an agent's page without its secret; `id` is its public part; `state` is active, expired or revoked."""

    id: str
    name: str
    withBodies: bool
    state: str
    createdAt: str
    expiresAt: str | None
    lastSeenAt: str | None


class LinksOut(BaseModel):
    """The links to an agent's page, newest first, with revoked links last."""

    links: list[LinkThing]


class LinkIn(Body):
    """The recipient and expiry of a new link; `days` is 90 if omitted, and null means that the link never expires.

    With `withBodies`, the page shows recorded request bodies.
    """

    name: Annotated[str, Field(min_length=1, max_length=100)]
    days: Annotated[int | None, Field(ge=1, le=3650)] = 90
    withBodies: bool = False


class MadeLinkOut(BaseModel):
    """A new link: `link` is its whole URL, which is shown only once."""

    link: str
    details: LinkThing


class PersonThing(BaseModel):
    """A user; `state` is active, invited or deactivated."""

    username: str
    role: str
    state: str
    lastSignIn: str | None


class PeopleOut(BaseModel):
    """All users."""

    people: list[PersonThing]


class PersonOut(BaseModel):
    """One user."""

    person: PersonThing


class InviteIn(Body):
    """The name and the role of the user to invite."""

    username: Annotated[str, Field(min_length=1, max_length=150)]
    role: Literal["viewer", "editor", "administrator"] = "viewer"


class InvitedOut(PersonOut):
    """A user and the link for choosing a password; it is shown only once and expires after `days` days."""

    link: str
    days: int


class PersonIn(Body):
    """Changes to a user; omitted fields are unchanged."""

    role: Literal["viewer", "editor", "administrator"] | None = None
    active: bool | None = None


class RevisionThing(BaseModel):
    """A revision: its author, and its changes described in sentences."""

    number: int
    createdAt: str
    actorKind: str
    actor: str
    act: str
    changes: list[str]


class RevisionsOut(BaseModel):
    """Revisions, newest first; `next` is the value of `before` for the next page, and null on the last page."""

    revisions: list[RevisionThing]
    next: int | None


class AliasThing(BaseModel):
    """A model alias and its target."""

    name: str
    target: str


class AliasesOut(EntriesOut):
    """All aliases, sorted by name."""

    aliases: list[AliasThing]


class AliasOut(EntriesOut):
    """One model alias."""

    alias: AliasThing


class AliasIn(Body):
    """The target of a model alias: `task:` and a task type, a service's id, `provider/model`, or `auto`."""

    target: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]


class LanguageThing(BaseModel):
    """A language and its directive; a built-in language (`builtIn`) can be changed but not removed."""

    code: str
    directive: str
    builtIn: bool


class LanguagesOut(EntriesOut):
    """All languages."""

    languages: list[LanguageThing]


class LanguageOut(EntriesOut):
    """One language."""

    language: LanguageThing


class LanguageIn(Body):
    """A language's directive, on one line."""

    directive: Annotated[str, Field(min_length=1, max_length=500)]


class SettingsThing(BaseModel):
    """Settings of the whole installation; null means that there is no value or no limit."""

    defaultLanguage: str | None
    contentPolicy: str | None
    contentText: str | None
    contentHtml: str | None
    requestDays: int
    artifactDays: int | None
    quotaBytes: int | None
    agentQuotaBytes: int | None
    recordBodies: bool


class SettingsOut(EntriesOut):
    """The settings that administrators can change."""

    settings: SettingsThing


class SettingsIn(Body):
    """Changes to settings; omitted fields are unchanged, and null removes the value or the limit."""

    defaultLanguage: Annotated[str | None, Field(max_length=35)] = None
    contentPolicy: Annotated[str | None, Field(max_length=40)] = None
    contentText: Annotated[str | None, Field(max_length=20)] = None
    contentHtml: Annotated[str | None, Field(max_length=20)] = None
    requestDays: Annotated[int, Field(ge=1, le=CENTURY_DAYS)] = 1
    artifactDays: Annotated[int | None, Field(ge=1, le=CENTURY_DAYS)] = None
    quotaBytes: Annotated[int | None, Field(ge=MEBIBYTE, le=MAX_BYTES)] = None
    agentQuotaBytes: Annotated[int | None, Field(ge=MEBIBYTE, le=MAX_BYTES)] = None
    recordBodies: bool = False
