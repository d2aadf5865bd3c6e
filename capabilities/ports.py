"""What these apps need from above; `routing_admin` fills these ports when Django is ready, unfilled ones raise.

`ledger` records changes, `routes` knows task routes, `installed` the newest snapshot, `refusals` what models did not
take, `descriptions` what models said of files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from capabilities.acts import Act, Actor
    from capabilities.core.delivery.model_description import FindDescription
    from capabilities.core.delivery.reader import Reader
    from capabilities.core.delivery.reasons import Reason
    from capabilities.core.delivery.receiver import Receiver
    from capabilities.core.delivery.tokens import Estimate
    from capabilities.core.message import ChatRequest, FilePart
    from capabilities.core.services.agents import AgentDirectory
    from capabilities.core.services.registry import LlmServiceRegistry
    from capabilities.core.vocabulary import Capabilities


class ChangeRecorder(Protocol):
    """Where changes are recorded."""

    def exclusive(self) -> AbstractContextManager[None]:
        """A transaction that no other change overlaps: decide in it on what is read in it.

        Raises `ConflictError` where a row was read before it and is deleted.
        """

    def change(self, actor: Actor, act: Act) -> AbstractContextManager[Act]:
        """A transaction whose end validates the configuration, records one revision and the audit event.

        The outermost change makes the revision; those inside it join. Raises `InvalidError` and rolls back when the
        configuration would be invalid.
        """

    def audit(self, actor: Actor, act: Act) -> AbstractContextManager[Act]:
        """A transaction whose end records the audit event alone: for acts that change no configuration."""

    def note_reading(self, actor: Actor, act: Act) -> None:
        """Records that somebody looked at something, unless the same stands there since ten minutes ago at most."""


@dataclass(frozen=True, slots=True)
class Link:
    """One candidate of a route's chain: its service's id, else `provider/model`, and what it counts as able to do."""

    name: str
    capabilities: Capabilities
    is_service: bool = True


class RouteDirectory(Protocol):
    """What the app above knows of task routes."""

    def exists(self, task_type: str) -> bool:
        """Whether that task type has a route."""

    def chain(self, task_type: str) -> tuple[Link, ...]:
        """The candidates of a route, in order; empty for an unknown one."""

    def default_language(self) -> str:
        """The language that descriptions are written in when the request names none."""

    def lead_by_default(self, chat: ChatRequest, language: str | None) -> ChatRequest:
        """The request as the default route sends it on: led by the language's directive, with its parameters."""


@dataclass(frozen=True, slots=True)
class Retention:
    """How much the installation keeps: bytes of artifacts, and days after which one expires; None without end.

    `agent_quota_bytes` is how much of it one agent may store.
    """

    quota_bytes: int | None = None
    days: int | None = None
    agent_quota_bytes: int | None = None


class InstalledServices(Protocol):
    """What is installed now, from memory: no query is made."""

    def receivers(self) -> Sequence[Receiver]:
        """One receiver per enabled service, in the order of the pages."""

    def default_receivers(self) -> Sequence[Receiver]:
        """The same if the default route led there: what it says of files wins over what the service says."""

    def receiver(self, service_id: str) -> Receiver | None:
        """The receiver of a service; None for an unknown id."""

    def registry(self) -> LlmServiceRegistry:
        """Services by id, and what each can do."""

    def agents(self) -> AgentDirectory:
        """Every living agent."""

    def agents_for(self, file: FilePart, but: str | None = None, *, only_configured: bool = False) -> list[str]:
        """The agents that can really read this very file; `but` is the agent who asks.

        `only_configured` leaves out those that programs made at run time.
        """

    def retention(self) -> Retention:
        """How many bytes of artifacts are kept, and for how long."""


@dataclass(frozen=True, slots=True)
class RefusedParameter:
    """A parameter that a model refused: sent as `sent_as`, None where it is left out; `until` is None for good."""

    name: str
    sent_as: str | None
    until: datetime | None = None


class Refusals(Protocol):
    """What models refuse, as it was learned from their answers."""

    def of(self, provider: str, model: str) -> Sequence[RefusedParameter]:
        """The parameters that are sent otherwise now, or not at all."""

    def forget(self, provider: str, model: str, name: str) -> None:
        """Sends this parameter as usual again, in every process. Raises what the database raises."""


class FileDescriptions(Protocol):
    """What models said of files for models that cannot read them; nobody is asked here."""

    def finder(self, chat: ChatRequest, language: str | None) -> Callable[[Reader], FindDescription]:
        """By reader, how the descriptions are found that it gets in a request along the default route."""

    def find_refusal(self, file: FilePart) -> Reason | None:
        """Why no model can be asked about the file; None where one can."""

    def estimate(self, describer: str, file: FilePart, language: str | None) -> Estimate | None:
        """About how many tokens the describer reads to describe a file; None where nobody knows."""


class _Ports:
    """The filled ports."""

    ledger: ChangeRecorder
    routes: RouteDirectory
    installed: InstalledServices
    refusals: Refusals
    descriptions: FileDescriptions


ports = _Ports()
