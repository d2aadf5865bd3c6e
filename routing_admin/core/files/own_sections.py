"""Sections of `llm-routing.json` that the original programs (seeds) lack.

They contain aliases, agents, languages, label budgets, exchange rates and the catalogue. Empty sections are not
written. A section that a file lacks stays unchanged, even if the import prunes everything that its files do not
mention. No file contains agent keys. Limits of agents and labels have the same format as in database rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from capabilities.core.exchange import ExchangeRate, check_rate
from capabilities.core.prices import CURRENCY as CURRENCY_CODE
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import (
    CURRENCY,
    MAX_AMOUNT,
    MAX_MONEY,
    MODELS,
    MONEY,
    UNPRICED,
    UNPRICED_PRICE,
    Meter,
    UnpricedPolicy,
)
from capabilities.core.services.agents import LabelKind
from capabilities.core.storable import is_storable, unreadable_text
from capabilities.core.translatable import translatable
from routing_admin.core.configuration.specs import (
    AgentSpec,
    AliasSpec,
    Configuration,
    LabelBudgetSpec,
    LanguageSpec,
)
from routing_admin.core.documents.json_path import child
from routing_admin.core.documents.kept_fields import drop_absent, merge_items
from routing_admin.core.documents.problem_sentences import (
    duplicate_name,
    invalid_choice,
    missing_field,
    out_of_range,
    wrong_type,
)
from routing_admin.core.files import field_rules as rule
from routing_admin.core.files.field_rules import Check, Rule, broken
from routing_admin.core.planning.model_names import MAX_NAME, is_target

LIMIT_NAMES = (MODELS, CURRENCY, UNPRICED, UNPRICED_PRICE, *(meter.value for meter in Meter))


def limits(path: str, value: Any) -> Iterator[Problem]:
    """Check the limits of an agent or label (see `docs/automation.md`), and yield each problem."""
    yield from rule.mapping(path, value)
    if not isinstance(value, Mapping):
        return
    for name in value.keys() - set(LIMIT_NAMES):
        yield invalid_choice(child(path, name), LIMIT_NAMES)
    yield from broken(LIMIT_RULES, value, path)
    if value.get(UNPRICED) == UnpricedPolicy.COUNT and value.get(UNPRICED_PRICE) is None:
        yield missing_field(child(path, UNPRICED_PRICE))
    if any(value.get(meter) is not None for meter in MONEY) and not value.get(CURRENCY):
        yield missing_field(child(path, CURRENCY))


def _names(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, list) or not all(isinstance(name, str) and is_storable(name) for name in value):
        yield wrong_type(path, translatable("a list of names"))


def _currency(path: str, value: Any) -> Iterator[Problem]:
    if not isinstance(value, str) or not CURRENCY_CODE.fullmatch(value):
        yield wrong_type(path, translatable("a currency's three capital letters, such as USD or CNY"))


def _money(path: str, value: Any) -> Iterator[Problem]:
    try:
        # Amounts are decimal text, as in database rows.
        is_good = isinstance(value, str) and value.isascii() and 0 < Decimal(value) <= MAX_MONEY
    except InvalidOperation:
        is_good = False
    if not is_good:
        yield out_of_range(path, translatable("an amount above 0, as a text"))


_count = rule.number(1, MAX_AMOUNT, translatable("a whole number above 0"), whole=True)
LIMIT_RULES = (
    Rule(MODELS, _names),
    Rule(CURRENCY, _currency),
    Rule(UNPRICED, rule.choice(tuple(UnpricedPolicy))),
    Rule(UNPRICED_PRICE, _money),
    *(Rule(meter.value, _money if meter in MONEY else _count) for meter in Meter),
)


RATE_FIELDS = ("currency", "into", "rate", "day", "source")
LAST_DAY = date.max
"""Last day for which a file may contain exchange rates. Only the page can reject future days, because it knows the
current date.
"""


def single_line(max_length: int) -> Check:
    """Return a check for one-line text that fits into a database column of `max_length` characters."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if isinstance(value, str) and (len(value) > max_length or any(character in value for character in "\r\n")):
            yield out_of_range(path, translatable("a text of at most %(most)s characters on one line", most=max_length))

    return check


AGENT_RULES = (
    Rule("id", rule.filled, required=True),
    *(Rule(name, rule.text) for name in ("name", "description", "serviceId", "taskType")),
    *(
        Rule(name, single_line(length))
        for name, length in (("id", 120), ("name", 200), ("serviceId", 200), ("taskType", 200))
    ),
    Rule("limits", limits),
)
AGENT_KEYS = tuple(dict.fromkeys(agent_rule.key for agent_rule in AGENT_RULES))


def agents(path: str, value: Any) -> Iterator[Problem]:
    """Check a list of agents and yield each problem.

    Ids must be unique, and no agent may have both a service and a task type.
    """
    yield from rule.listing(path, value)
    ids: set[str] = set()
    for index, raw in enumerate(value if isinstance(value, list) else ()):
        item_path = f"{path}[{index}]"
        if not isinstance(raw, Mapping):
            yield wrong_type(item_path, translatable("an object"))
            continue
        yield from broken(AGENT_RULES, raw, item_path)
        for key in raw.keys() - set(AGENT_KEYS):
            message = translatable(
                "%(path)s is unknown and is not kept. Known: %(known)s.", path=child(item_path, key), known=AGENT_KEYS
            )
            yield Problem(child(item_path, key), message, "enum", "warning")
        if raw.get("serviceId") and raw.get("taskType"):
            message = translatable("%(path)s has a serviceId and a taskType. Keep one of them.", path=item_path)
            yield Problem(item_path, message, "range")
        if isinstance(raw.get("id"), str) and raw["id"] in ids:
            yield duplicate_name(f"{item_path}.id", "id", raw["id"])
        ids.add(str(raw.get("id")))


def texts(longest_name: int, longest: int) -> Check:
    """Return a check for an object that maps names to strings, both with a maximum length."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        yield from rule.mapping(path, value)
        for name, item in value.items() if isinstance(value, Mapping) else ():
            yield from _name(path, name, longest_name)
            yield from rule.filled(child(path, name), item)
            yield from single_line(longest)(child(path, name), item)

    return check


def budgets(path: str, value: Any) -> Iterator[Problem]:
    """Check an object that maps labels to limits, and yield each problem."""
    yield from rule.mapping(path, value)
    for name, item in value.items() if isinstance(value, Mapping) else ():
        yield from _name(path, name, 130)
        kind, colon, rest = name.partition(":")
        if kind not in tuple(LabelKind) or not colon or not rest:
            yield out_of_range(child(path, name), translatable("under a label: team:…, project:… or user:…"))
        yield from limits(child(path, name), item)


def rates(path: str, value: Any) -> Iterator[Problem]:
    """Check a list of exchange rates, which must all convert to the same currency; yield each problem."""
    yield from rule.listing(path, value)
    valid: list[ExchangeRate] = []
    for index, raw in enumerate(value if isinstance(value, list) else ()):
        item_path = f"{path}[{index}]"
        if not isinstance(raw, Mapping) or not all(isinstance(raw.get(name), str) for name in RATE_FIELDS):
            yield wrong_type(item_path, translatable("an object with the texts %(names)s", names=RATE_FIELDS))
            continue
        rate = ExchangeRate(**{name: raw[name] for name in RATE_FIELDS})
        yield from (
            replace(problem, field=child(item_path, problem.field)) for problem in check_rate(rate, valid, LAST_DAY)
        )
        if any(earlier.currency == rate.currency for earlier in valid):
            yield duplicate_name(f"{item_path}.currency", "currency", rate.currency)
        valid.append(rate)


def _name(path: str, name: str, longest: int) -> Iterator[Problem]:
    if len(name) > longest or any(character in name for character in "\r\n"):
        yield out_of_range(path, translatable("under names of at most %(most)s characters on one line", most=longest))
    if not name.strip():
        yield out_of_range(child(path, name), translatable("under a name that is not empty"))
    elif not is_storable(name):
        yield unreadable_text(child(path, name))


@dataclass(frozen=True, slots=True)
class OwnSection:
    """A section of `llm-routing.json` that the original programs (seeds) lack.

    `field` is its name in the configuration, `key` its name in the file. `name` returns the name of an item.
    """

    field: str
    key: str
    check: Callable[[str, Any], Iterator[Problem]]
    name: Callable[[Any], str]
    write: Callable[[Any], Any]
    read: Callable[[Any], Iterator[Any]]


def _write_agent(agent: AgentSpec) -> dict[str, Any]:
    return {"id": agent.id} | drop_absent(
        {
            "name": agent.name or None,
            "description": agent.description or None,
            "serviceId": agent.service_id,
            "taskType": agent.task_type,
            # Sort the limits, because databases return the fields of JSON objects in no particular order.
            "limits": dict(sorted(agent.limits.items())) or None,
        }
    )


def _read_agents(value: Any) -> Iterator[AgentSpec]:
    for raw in value:
        yield AgentSpec(
            raw["id"],
            raw.get("name") or "",
            raw.get("description") or "",
            raw.get("serviceId") or None,
            raw.get("taskType") or None,
            raw.get("limits") or {},
        )


OWN_SECTIONS = (
    OwnSection(
        *("aliases", "aliases", texts(200, MAX_NAME), lambda alias: alias.name),
        lambda items: {alias.name: alias.target for alias in items},
        lambda value: (AliasSpec(*pair) for pair in value.items()),
    ),
    OwnSection(
        *("agents", "agents", agents, lambda agent: agent.id),
        lambda items: [_write_agent(agent) for agent in items],
        _read_agents,
    ),
    OwnSection(
        *("languages", "languages", texts(35, 500), lambda language: language.code),
        lambda items: {language.code: language.directive for language in items},
        lambda value: (LanguageSpec(*pair) for pair in value.items()),
    ),
    OwnSection(
        *("label_budgets", "labelBudgets", budgets, lambda budget: budget.id),
        lambda items: {budget.id: dict(sorted(budget.limits.items())) for budget in items},
        lambda value: (LabelBudgetSpec(*pair) for pair in value.items()),
    ),
    OwnSection(
        *("exchange_rates", "exchangeRates", rates, lambda rate: rate.currency),
        lambda items: [asdict(rate) for rate in items],
        lambda value: (ExchangeRate(**{name: raw[name] for name in RATE_FIELDS}) for raw in value),
    ),
)
CATALOGUE = "catalogue"
OWN_KEYS = (*(part.key for part in OWN_SECTIONS), CATALOGUE)
OWN_RULES = (
    *(Rule(part.key, part.check) for part in OWN_SECTIONS),
    Rule(CATALOGUE, rule.text),
    Rule(CATALOGUE, single_line(300)),
)


def write_own_sections(configuration: Configuration) -> dict[str, Any]:
    parts = {part.key: part.write(items) for part in OWN_SECTIONS if (items := getattr(configuration, part.field))}
    return parts | drop_absent({CATALOGUE: configuration.catalogue})


def without_own_sections(configuration: Configuration) -> Configuration:
    parts: dict[str, Any] = {part.field: () for part in OWN_SECTIONS}
    return replace(configuration, catalogue=None, **parts)


def merge_own_sections(current: Configuration, value: Mapping[str, Any], prune: bool) -> Configuration:
    """Return the configuration with the sections of a valid file merged into it.

    Sections that it lacks stay unchanged.
    """
    changes: dict[str, Any] = {CATALOGUE: value[CATALOGUE] or None} if value.get(CATALOGUE) is not None else {}
    for part in OWN_SECTIONS:
        if value.get(part.key) is not None:
            old = getattr(current, part.field)
            new = {part.name(item): item for item in part.read(value[part.key])}
            changes[part.field] = tuple(new.values()) if prune else merge_items(old, new, part.name)
    if "agents" in changes:  # No file contains agent keys, so the settings of existing keys are kept.
        keys_by_agent = {agent.id: agent.keys for agent in current.agents}
        changes["agents"] = tuple(
            replace(agent, keys=keys_by_agent.get(agent.id, agent.keys)) for agent in changes["agents"]
        )
    return replace(current, **changes)


def lost_aliases(configuration: Configuration, values: Iterable[Any]) -> Iterator[Problem]:
    """Yield a warning for each alias in these files whose target does not exist."""
    names = {name for value in values for name in value.get("aliases") or ()}
    for alias in configuration.aliases:
        if alias.name in names and not is_target(configuration, alias.target):
            message = translatable(
                "The alias “%(name)s” leads to “%(target)s”, which is not there.", name=alias.name, target=alias.target
            )
            yield Problem(child("aliases", alias.name), message, "reference", "warning")


def languages_in(value: object) -> tuple[str, ...]:
    found = value.get("languages") if isinstance(value, Mapping) else None
    return tuple(found) if isinstance(found, Mapping) else ()
