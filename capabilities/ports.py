"""What this app needs from above it; `routing_admin` fills these ports when Django is ready, unfilled ones raise.

`ledger` records changes, `dial` calls providers, `routes` knows task routes, `installed` holds the newest snapshot,
`refusals` what models did not take, `foresight` what an act would change, `price_lists` what models cost, `key_book`
how a provider's keys do, `descriptions` what models said of files, `file_describer` has files described.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from capabilities.core.prices import amount_text

if TYPE_CHECKING:
    from capabilities.access import Principal
    from capabilities.acts import Act, Actor
    from capabilities.core.consequence import Consequence
    from capabilities.core.delivery.model_description import FindDescription, ModelDescription
    from capabilities.core.delivery.reader import Reader
    from capabilities.core.delivery.reasons import Reason
    from capabilities.core.delivery.receiver import Receiver
    from capabilities.core.delivery.tokens import Estimate
    from capabilities.core.message import ChatRequest, FilePart
    from capabilities.core.prices import Price
    from capabilities.core.providers.catalogue import Catalogue
    from capabilities.core.services.agent_limits import AgentLimits, Meter
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
class DialAnswer:
    """What a call to a provider's address gave: `fault` empty when it answered; `ms` until it did.

    `models` are the ids of its own list, `entries` the list's entries as they came. `quirks` are the options that it
    took to be answered.
    """

    ms: float
    fault: str = ""
    status: int | None = None
    message: str = ""
    models: tuple[str, ...] = ()
    text: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    entries: tuple[Any, ...] = ()
    quirks: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyNote:
    """A provider's key as pages show it, never the key itself.

    `source` is not_needed, override, environment, stored or missing; `reason` says why the provider cannot be called.
    `unconfirmed` is the origin that an administrator has to allow for the key in `variable` first.
    """

    source: str
    variable: str = ""
    last_four: str = ""
    reason: str = ""
    unconfirmed: str = ""


@dataclass(frozen=True, slots=True)
class KeyHealth:
    """One of a provider's keys: where it comes from, and how it does in this process and by the log.

    `rests_until` is None where it does not rest; `rest` and `refusal` are faults: why it rests, and what the provider
    last said of it. `last_used` looks back over the provider's newest attempts only.
    """

    name: str
    note: KeyNote
    enabled: bool = True
    rests_until: datetime | None = None
    rest: str = ""
    last_used: datetime | None = None
    refused_at: datetime | None = None
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """One candidate of a route's chain: its service's id, else `provider/model`, and what it counts as able to do."""

    name: str
    capabilities: Capabilities
    is_service: bool = True


class Dial(Protocol):
    """Calls a provider for an administrator, with the saved configuration only."""

    def test(self, provider: str, model: str) -> DialAnswer:
        """One tiny chat request."""

    def test_each(self, models: Mapping[str, str]) -> Mapping[str, DialAnswer]:
        """The same to a model of each provider, all at once; by the provider's name."""

    def test_keys(self, provider: str, model: str, names: Collection[str] = ()) -> Mapping[str, DialAnswer]:
        """The same with each of the provider's keys, all at once; by the key's name, of these names or of all."""

    def models(self, provider: str) -> DialAnswer:
        """The provider's own list of models."""

    def ask_each(self, provider: str, model: str, chats: Sequence[ChatRequest]) -> Sequence[DialAnswer]:
        """Requests sent as they are, all at once, whatever the model is said to read; `text` is each answer."""


class RouteDirectory(Protocol):
    """What the app above knows of task routes."""

    def exists(self, task_type: str) -> bool:
        """Whether that task type has a route."""

    def aliases_of(self, target: str) -> Sequence[str]:
        """The aliases that lead to a name, by the rows."""

    def task_types(self) -> tuple[str, ...]:
        """Every task type that has a route, in order."""

    def chain(self, task_type: str) -> tuple[Link, ...]:
        """The candidates of a route, in order; empty for an unknown one."""

    def lead(self, actor: Actor, alias: str, target: str) -> None:
        """Makes a model name that callers use lead to a service id or `task:…`; joins the change that is open."""

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

    def catalogue(self) -> Catalogue:
        """What is known of models: the catalogue that came with the program, or the edition taken over it."""

    def key_notes(self) -> Mapping[str, KeyNote]:
        """Where each provider's key comes from at this moment, by provider name."""

    def tools(self, language: str) -> Sequence[Mapping[str, Any]]:
        """The agents' tools as function definitions in a language, for a snippet."""

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


class KeyBook(Protocol):
    """How each key of a provider does."""

    def describe(self, provider: str) -> Sequence[KeyHealth]:
        """Every key in order, the first one first; where there are several, two queries of the log at most."""


class Foresight(Protocol):
    """What an act would mean for routes and agents, the gravest first; read from memory, nothing is written."""

    def of_deleting(self, kind: str, names: Collection[str]) -> Sequence[Consequence]:
        """What deleting things would mean; `kind` is provider, service or agent, as the configuration names them."""

    def of_disabling(self, kind: str, names: Collection[str]) -> Sequence[Consequence]:
        """What disabling providers or services would mean."""

    def of_ending(self, provider: str, model: str) -> Sequence[Consequence]:
        """What it means that a model is no longer served from its last day on; nothing where that is far."""


class PriceLists(Protocol):
    """What models cost by the lists that come with the project."""

    def price_at(self, endpoint: str, model: str) -> Price | None:
        """The price of a model at the host of an endpoint today; None where no list has one."""

    def price_for(self, own: Mapping[str, Any], endpoint: str, model: str) -> Price | None:
        """The price in effect: the administrator's own as a service keeps it, else the listed one."""


@dataclass(frozen=True, slots=True)
class LimitUse:
    """How much of a limit is used: `used` of `limit`, and when that begins anew; None for what ends with the calls.

    Money is in nanos of `currency`, which is empty for everything else. `uncounted` are the calls that a budget of
    money let pass since then without a price that it could count.
    """

    meter: Meter
    limit: int
    used: int
    resets_at: datetime | None = None
    currency: str = ""
    uncounted: int = 0

    @property
    def percent(self) -> int:
        """The same in whole percent, 100 at most."""
        return min(100, self.used * 100 // self.limit)

    @property
    def remaining(self) -> int:
        """What is left."""
        return max(0, self.limit - self.used)

    @property
    def text(self) -> str:
        """How much of how much, as people read it."""
        if self.currency:
            return f"{amount_text(self.used)} / {amount_text(self.limit)} {self.currency}"
        return f"{self.used:,} / {self.limit:,}"


class LimitUses(Protocol):
    """What agents and their keys used of their limits."""

    def of(self, limits: Mapping[str, AgentLimits | None]) -> Mapping[str, Sequence[LimitUse]]:
        """What each holder used of each of its limits, in the order of `Meter`. One query, where there are limits."""


class FileDescriber(Protocol):
    """Has a model describe files for agents that ask for it: that takes time, and costs what it costs."""

    def describe(self, principal: Principal, request_id: str, file: FilePart, language: str) -> ModelDescription | None:
        """What a model says of the file, or that it failed; None where none can be asked, or the agent may not."""


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
    dial: Dial
    routes: RouteDirectory
    installed: InstalledServices
    refusals: Refusals
    foresight: Foresight
    price_lists: PriceLists
    limit_uses: LimitUses
    key_book: KeyBook
    file_describer: FileDescriber
    descriptions: FileDescriptions


ports = _Ports()
