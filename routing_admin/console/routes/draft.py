"""The draft of a route in the editor, which is read from the posted form. Nothing is stored before Save.

Each candidate of the chain is a card on the page. The page posts the ids of its cards in order (`card`, repeated), and
each card's fields as `c-<card>-…`. Dragging a card in the browser therefore has the same effect as pressing its
buttons.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.http import QueryDict

from routing_admin.console.base.content_policies import read_content_option, read_policy
from routing_admin.console.base.form_fields import object_text
from routing_admin.console.routes.forms import CandidateForm, RouteForm
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec
from routing_admin.core.documents.kept_fields import plain_number
from routing_admin.core.fallback.policy import ErrorPreset, error_class_problem
from routing_admin.core.fallback.table import Action

POLICY_KEYS = ("preset", "fallbackOn")
"""Keys in an error policy that are not error classes."""


@dataclass(slots=True)
class CandidateDraft:
    """A candidate in a draft. `id` identifies the candidate's card on the page."""

    id: str
    form: CandidateForm
    provider: str
    model: str | None

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(slots=True)
class Draft:
    """The draft: the route's form, the candidates' cards in order, and the route's own actions by error class.

    `version` is the stored version that is being edited.
    """

    form: RouteForm
    cards: list[CandidateDraft]
    on_error: dict[str, str] = field(default_factory=dict)
    version: int | None = None
    problems: list[str] = field(default_factory=list)

    def valid(self) -> bool:
        """Validate all forms of the draft. Return whether they are valid."""
        return all([self.form.is_valid(), *(card.form.is_valid() for card in self.cards)])

    def spec(self, base: RouteSpec) -> RouteSpec:
        """Return the route that the draft describes. Invalid fields keep the values that they have in `base`."""
        self.valid()
        cleaned = self.form.cleaned_data
        return replace(
            base,
            task_type=cleaned.get("task_type", base.task_type),
            candidates=tuple(self._candidates(base)),
            enabled=cleaned.get("enabled", base.enabled),
            **{name: cleaned.get(name, getattr(base, name)) for name in NUMBERS},
            on_error=self._policy(base, cleaned.get("preset", ErrorPreset.SEED.value)),
            content=_content(base, cleaned),
            on_drop=cleaned.get("on_drop", base.on_drop),
            on_overflow=cleaned.get("on_overflow", base.on_overflow),
            directive=cleaned.get("directive", base.directive),
            allow_n=bool(cleaned.get("allow_n", base.allow_n)),
        )

    def _candidates(self, base: RouteSpec) -> Iterator[CandidateSpec]:
        # Values that the page does not show are taken from the stored candidate with the same model. If several cards
        # have the same model, they use the stored candidates in order.
        stored: dict[tuple[str, str | None], list[CandidateSpec]] = {}
        for candidate in base.candidates:
            stored.setdefault((candidate.provider, candidate.model), []).append(candidate)
        for card in self.cards:
            card.form.is_valid()
            matches = stored.get((card.provider, card.model))
            current = matches.pop(0) if matches else CandidateSpec(card.provider, card.model)
            values = card.form.cleaned_data
            # If the page did not post this field, keep the stored value.
            is_sent = card.form.add_prefix("extra_body") in card.form.data
            yield replace(
                current,
                temperature=values.get("temperature", current.temperature),
                max_tokens=values.get("max_tokens", current.max_tokens),
                extra_body=values.get("extra_body", current.extra_body) if is_sent else current.extra_body,
            )

    def _policy(self, base: RouteSpec, preset: str) -> str | Mapping[str, Any]:
        # An unchanged error policy keeps its notation, so that saving the route changes nothing.
        if (preset, self.on_error) == (error_preset(base), own_actions(base)):
            return base.on_error
        fallback_on = _fallback_conditions(base)
        fallback = {"fallbackOn": fallback_on} if fallback_on else {}
        preset_entry = {} if preset == ErrorPreset.SEED else {"preset": preset}
        if not self.on_error and not fallback:
            return preset if preset_entry else {}
        return {**preset_entry, **self.on_error, **fallback}


NUMBERS = ("temperature", "max_tokens", "retries", "deadline", "first_content", "keep_alive_seconds")


def _fallback_conditions(route: RouteSpec) -> Any:
    return None if isinstance(route.on_error, str) else route.on_error.get("fallbackOn")


def _text(data: QueryDict, name: str) -> str:
    return str(data.get(name, ""))


def _content(base: RouteSpec, cleaned: Mapping[str, Any]) -> Mapping[str, Any]:
    other_keys = {key: value for key, value in base.content.items() if key not in ("policy", "text", "html")}
    words = {"policy": cleaned.get("policy", "")}
    words |= {name: cleaned.get(name, read_content_option(base.content, name)) for name in ("text", "html")}
    return {**{key: word for key, word in words.items() if word}, **other_keys}


def error_preset(route: RouteSpec) -> str:
    """Return the name of the preset in a route's error policy, by default `seed`."""
    preset = route.on_error if isinstance(route.on_error, str) else route.on_error.get("preset")
    return str(preset) if preset in set(ErrorPreset) else ErrorPreset.SEED.value


def own_actions(route: RouteSpec) -> dict[str, str]:
    """Return the actions that the route itself sets, by error class."""
    table = {} if isinstance(route.on_error, str) else route.on_error
    return {key: str(action) for key, action in table.items() if key not in POLICY_KEYS and action in set(Action)}


def plain(value: Any) -> str:
    return "" if value is None else str(plain_number(value))


def build_draft(route: RouteSpec, version: int | None) -> Draft:
    """Build the draft of a stored or new route that has not been edited yet."""
    data = QueryDict(mutable=True)
    for name in NUMBERS:
        data[name] = plain(getattr(route, name))
    data.update({"task_type": route.task_type, "preset": error_preset(route)})
    data["policy"] = read_policy(route.content)
    data["text"] = read_content_option(route.content, "text")
    data["html"] = read_content_option(route.content, "html")
    data["on_drop"] = route.on_drop
    data["on_overflow"] = route.on_overflow
    data["directive"] = route.directive
    data["allow_n"] = "yes" if route.allow_n else ""
    if route.enabled:
        data["enabled"] = "on"
    for number, spec in enumerate(route.candidates, start=1):
        append_card(data, str(number), spec)
    for word, action in own_actions(route).items():
        data[f"on-{word}"] = action
    return read_draft(data, version)


def append_card(data: QueryDict, card: str, spec: CandidateSpec) -> None:
    data.appendlist("card", card)
    for name in ("provider", "model", "temperature", "max_tokens"):
        data[f"c-{card}-{name}"] = plain(getattr(spec, name))
    data[f"c-{card}-extra_body"] = object_text(spec.extra_body)


def read_draft(data: QueryDict, version: int | None = None) -> Draft:
    """Read the draft that a page posted."""
    cards = [_card(data, card) for card in dict.fromkeys(data.getlist("card")) if f"c-{card}-provider" in data]
    version_text = _text(data, "version")
    actions = {key[3:]: str(value) for key, value in data.items() if key.startswith("on-") and value in set(Action)}
    # The page does not offer unknown error classes, and the route would not accept them, so they are ignored.
    known_actions = {word: action for word, action in actions.items() if error_class_problem(word) is None}
    return Draft(
        RouteForm(data),
        cards,
        known_actions,
        version if version is not None else int(version_text) if version_text.isdecimal() else None,
    )


def _card(data: QueryDict, card: str) -> CandidateDraft:
    form = CandidateForm(data, prefix=f"c-{card}")
    return CandidateDraft(card, form, _text(data, f"c-{card}-provider"), _text(data, f"c-{card}-model") or None)


@dataclass(frozen=True, slots=True)
class EditorAction:
    """A pressed button of the chain editor, and the card that the button belongs to."""

    verb: str
    target: str = ""


def read_action(data: QueryDict) -> EditorAction:
    # Each kind of button has its own form field, because a button can submit only one name and value.
    if _text(data, "move"):
        card, _, direction = _text(data, "move").partition(":")
        return EditorAction(direction, card)
    if _text(data, "remove"):
        return EditorAction("remove", _text(data, "remove"))
    verb = _text(data, "act") or "check"
    # Pressing Enter in the field for a new candidate submits the form's first button, which only validates the form.
    # Treat this as a press of the button that adds the candidate.
    return EditorAction("add" if verb == "check" and _text(data, "pick").strip() else verb)


def apply_action(data: QueryDict, action: EditorAction, configuration: Configuration) -> QueryDict:
    """Return the form data as changed by a button that moves, removes or adds a card."""
    cards = list(dict.fromkeys(data.getlist("card")))
    changed = data.copy()
    if action.verb == "remove":
        changed.setlist("card", [card for card in cards if card != action.target])
    elif action.verb in ("up", "down") and action.target in cards:
        index = cards.index(action.target)
        new_index = min(max(index + (-1 if action.verb == "up" else 1), 0), len(cards) - 1)
        cards.insert(new_index, cards.pop(index))
        changed.setlist("card", cards)
    elif action.verb == "add":
        candidate = pick_candidate(_text(data, "pick").strip(), configuration)
        if candidate is not None:
            number = 1 + max((int(card) for card in cards if card.isdecimal()), default=0)
            append_card(changed, str(number), candidate)
            changed["pick"] = ""
    return changed


def focus_after(action: EditorAction, cards: Sequence[str]) -> str:
    """Return the button that gets the focus after an action, or an empty string to leave the focus where it is."""
    # Otherwise, keyboard users would lose the focus, because the pressed button may no longer exist, or be disabled at
    # an end of the chain.
    if action.verb == "remove" and cards:
        return f"drop {cards[0]}"
    if len(cards) > 1 and action.target in (cards[0], cards[-1]):
        return f"{'down' if action.target == cards[0] else 'up'} {action.target}"
    return ""


def pick_candidate(text: str, configuration: Configuration) -> CandidateSpec | None:
    """Return the candidate that a text names, or None.

    The text may be the id of a model service, the name of a provider, or `provider/model`.
    """
    service = configuration.service(text)
    if service is not None:
        return CandidateSpec(service.provider, service.model)
    # Provider names and model names may contain slashes, so the longest matching provider name is used.
    names = [provider.name for provider in configuration.providers if f"{text}/".startswith(f"{provider.name}/")]
    name = max(names, key=len, default=None)
    return None if name is None else CandidateSpec(name, text[len(name) + 1 :].strip()[:200] or None)


# A task type may be any text, so task types that a URL path cannot contain are encoded.

PLAIN_NAME = re.compile(r"[^/~.\x00-\x1f\x7f][^/\x00-\x1f\x7f]*")
# `routes/new/` is the page for a new route, so a task type with this name must be encoded, too.
RESERVED_NAMES = frozenset({"new"})
ESCAPE = "~"


class TaskType:
    """Converter for task types in URL paths.

    `planning` stays as it is; `a/b`, `..` and `new` become `~` followed by URL-safe base64.
    """

    regex = r"[^/]+"

    def to_python(self, value: str) -> str:
        """Decode a task type in a URL. Raise `ValueError` if it is malformed, so that Django returns 404."""
        if not value.startswith(ESCAPE):
            return value
        # Restore the base64 padding, which the URL omits.
        data = value[1:] + "=" * (-len(value[1:]) % 4)
        try:
            return base64.b64decode(data, altchars=b"-_", validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ValueError(value) from error

    def to_url(self, value: str) -> str:
        if PLAIN_NAME.fullmatch(value) and value not in RESERVED_NAMES:
            return value
        return ESCAPE + base64.urlsafe_b64encode(value.encode()).decode().rstrip("=")
