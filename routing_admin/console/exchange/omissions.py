"""Group the omissions of an export by cause, for the page that offers the exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext_noop as _

from capabilities.core.translatable import Translatable
from capabilities.sentences import translate_sentence

MAX_LISTED = 5
"""Maximum number of names that the page lists for a cause."""

PLURALS: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "Stored keys are not in this file: %(names)s. Set their variables, or enter them again after an import.": (
        _(
            "The stored keys of %(count)s providers are in no file. Set their variables, or enter them again after an "
            "import."
        ),
        "providers",
        {"key": "stored"},
    ),
    "Provider “%(name)s” is left out: it is disabled.": (
        _("%(count)s providers are left out: they are disabled."),
        "providers",
        {"state": "disabled"},
    ),
    "Provider “%(name)s” is left out: all its keys are disabled.": (
        _("%(count)s providers are left out: all their keys are disabled."),
        "",
        {},
    ),
    "Provider “%(name)s” is left out: it uses the protocol %(protocol)s.": (
        _("%(count)s providers are left out: they use the protocol %(protocol)s."),
        "providers",
        {"protocol": "%(protocol)s"},
    ),
    "Provider “%(name)s”: its %(what)s cannot be expressed.": (
        _("%(count)s providers: their %(what)s cannot be expressed."),
        "",
        {},
    ),
    "Model service “%(name)s” is left out: it uses the protocol %(protocol)s.": (
        _("%(count)s model services are left out: they use the protocol %(protocol)s."),
        "services",
        {"protocol": "%(protocol)s"},
    ),
    "Model service “%(name)s” is left out: every key of %(provider)s is disabled.": (
        _("%(count)s model services are left out: every key of their provider is disabled."),
        "",
        {},
    ),
    "Model service “%(name)s” is left out: it is disabled.": (
        _("%(count)s model services are left out: they are disabled."),
        "services",
        {"state": "disabled"},
    ),
    "Model service “%(name)s”: its own rules are left out (%(rules)s).": (
        _("%(count)s model services: their own rules are left out."),
        "",
        {},
    ),
    "Route “%(name)s” is left out: none of its candidates can be expressed.": (
        _("%(count)s routes are left out: none of their candidates can be expressed."),
        "",
        {},
    ),
    "Route “%(name)s” is left out: it is disabled.": (
        _("%(count)s routes are left out: they are disabled."),
        "routes",
        {"state": "disabled"},
    ),
    "Route “%(name)s” starts with %(provider)s: %(primary)s is left out.": (
        _("%(count)s routes start with a later candidate: those before it are left out."),
        "",
        {},
    ),
    "Route “%(name)s”: its %(what)s cannot be expressed.": (
        _("%(count)s routes: their %(what)s cannot be expressed."),
        "",
        {},
    ),
    "Route “%(name)s”: %(provider)s's own parameters as the first candidate cannot be expressed.": (
        _("%(count)s routes: the first candidate's own parameters cannot be expressed."),
        "",
        {},
    ),
    "Route “%(name)s”: %(provider)s's own parameters as a fallback cannot be expressed.": (
        _("%(count)s routes: a fallback's own parameters cannot be expressed."),
        "",
        {},
    ),
    "Alias “%(name)s” cannot be expressed.": (_("%(count)s aliases cannot be expressed."), "", {}),
}
"""Maps each sentence about one omitted entry to its plural, and to the URL name and filters of a page that lists such
entries.
"""


@dataclass(frozen=True, slots=True)
class Omission:
    """Entries omitted for the same reason: a sentence, their names, and the URL of a page that lists them, if any.

    If the sentence is about a single entry or the whole file, `names` is empty.
    """

    text: str
    url: str = ""
    names: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        return max(1, len(self.names))

    @property
    def listed(self) -> tuple[str, ...]:
        return self.names[:MAX_LISTED]

    @property
    def unlisted(self) -> int:
        return len(self.names[MAX_LISTED:])


def group_omissions(sentences: Iterable[str]) -> list[Omission]:
    """Group an export's sentences about omissions.

    Sentences that differ only in names are combined. The largest groups are first.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for text in sentences:
        template, facts = (text.template, text.facts) if isinstance(text, Translatable) else (text, {})
        kind = str(facts.get("protocol") or facts.get("what") or "") if template in PLURALS else str(text)
        # Missing keys are reported for both files, so count each only once.
        if str(text) not in (group := groups.setdefault((template, kind), [])):
            group.append(text)
    omissions = (_omission(template, texts) for (template, _kind), texts in groups.items())
    return sorted(omissions, key=lambda omission: -omission.count)


def _omission(template: str, texts: list[str]) -> Omission:
    first = texts[0]
    if template not in PLURALS or not isinstance(first, Translatable):
        return Omission(translate_sentence(first))
    many, page, filters = PLURALS[template]
    names = tuple(str(name) for text in texts for name in _names_in(text))
    query = urlencode({key: value % first.facts for key, value in filters.items()})
    text = first if len(names) == 1 else Translatable(many, {**first.facts, "count": f"{len(names):,}"})
    url = f"{reverse(page)}?{query}" if page else ""
    return Omission(translate_sentence(text), url, names if len(names) > 1 else ())


def _names_in(text: str) -> tuple[object, ...]:
    facts = text.facts if isinstance(text, Translatable) else {}
    names = facts.get("names")
    return names if isinstance(names, tuple) else (facts["name"],)
