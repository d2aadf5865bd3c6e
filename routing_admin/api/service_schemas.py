# ruff: noqa: N815 - JSON keys are camelCase
"""JSON schemas for model services and agents in the agents' API."""

from __future__ import annotations

from typing import Annotated, Self

from ninja import Schema
from pydantic import ConfigDict, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from routing_admin.api.errors import Body

Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in ISO 8601."""


class CapabilitiesOut(Schema):
    """The capabilities of a model: what it reads and writes."""

    input: list[str]
    output: list[str]


class ServiceOut(Schema):
    """A model service, without its key."""

    id: str
    name: str
    baseURL: str
    model: str
    capabilityTags: list[str]
    capabilities: CapabilitiesOut
    description: str


class ServicesOut(Schema):
    """Model services in their configured order."""

    services: list[ServiceOut]


class SupportedOut(Schema):
    """Whether a service has a capability."""

    supported: bool


class AgentsOut(Schema):
    """The ids of agents."""

    agents: list[str]


class ChainOut(Schema):
    """The input types that all candidates of a task route read, and the types that only some of them read."""

    all: list[str]
    some: list[str]


class AgentOut(Schema):
    """An agent with its model's capabilities; `forwardTo` maps the other capabilities to agents that have them."""

    id: str
    name: str
    description: str
    serviceId: str | None
    taskType: str | None = None
    capabilities: CapabilitiesOut
    forwardTo: dict[str, list[str]]
    chain: ChainOut | None = None


class LimitOut(Schema):
    """The use of one limit; `resetsAt` is null for a limit on concurrent calls, which is freed when calls end.

    `currency` is set for an amount of money and null for everything else. `uncounted` is the number of calls without a
    known price, which a money budget allows without counting them.
    """

    meter: str
    limit: int | float
    used: int | float
    remaining: int | float
    currency: str | None
    uncounted: int
    resetsAt: Moment | None


class LimitsOut(Schema):
    """The limits of the calling agent or its key; an empty `models` means all task routes and services."""

    models: list[str]
    amounts: list[LimitOut]


class KeyLabelsOut(Schema):
    """Labels of this key. They override the labels that a call sets; a call may set any label that is null here."""

    team: str | None
    project: str | None


class OwnAgentOut(AgentOut):
    """The calling agent with its limits and the limits of the calling key, each null if there are none."""

    limits: LimitsOut | None = None
    keyLimits: LimitsOut | None = None
    keyLabels: KeyLabelsOut


class AgentIn(Body):
    """An agent to create at run time; it uses one service, one task type, or neither yet."""

    name: str | None = Field(None, max_length=200)
    description: str | None = Field(None, max_length=10_000)
    serviceId: str | None = Field(None, max_length=200)
    taskType: str | None = Field(None, max_length=200)
    expiresInSeconds: float | None = Field(None, gt=0, le=3_155_760_000)


class AttachmentIn(Body):
    """A file that a message refers to; `size` is in bytes."""

    type: str | None = Field(None, max_length=100)
    artifactRef: str = Field(min_length=1, max_length=300)
    filename: str | None = Field(None, max_length=1000)
    size: int | None = Field(None, ge=0)
    mimeType: str | None = Field(None, max_length=255)


class MessageIn(Body):
    """A message from one agent to another: text, attachments or both."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    text: str | None = None
    attachments: list[AttachmentIn] | None = Field(None, max_length=100)

    @model_validator(mode="after")
    def _require_content(self) -> Self:
        # An empty message is refused, because its text may have been sent in a misspelt field, which is ignored.
        if self.text is None and self.attachments is None:
            raise PydanticCustomError("missing", "A message has text, attachments or both")
        return self


class RouteMessageIn(Body):
    """A message and the service that receives it, by default the calling agent's service."""

    message: MessageIn
    serviceId: str | None = Field(None, max_length=200)
    language: str | None = Field(None, max_length=35)
    describe: bool = Field(False, description="Have a model describe what the service cannot read; this calls it.")


class RequiredIn(Body):
    """A message to check for the capabilities that it requires."""

    message: MessageIn


class RequiredOut(Schema):
    """Required capabilities in the order in which the message needs them; `text` is first."""

    capabilities: list[str]


class RoutingResultOut(Schema):
    """What the service receives for the message; `textDescription` replaces attachments that it cannot read."""

    canProcess: bool
    processedContent: str | list[dict[str, object]]
    unsupportedAttachments: list[dict[str, object]]
    textDescription: str | None = None


class ErrorOut(Schema):
    """The body of every error response; a 422 has `details`, and some errors have further fields."""

    error: str
    message: str
    requestId: str
    details: list[dict[str, str]] | None = None
