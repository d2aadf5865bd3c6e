"""Sentences about configuration changes and audited actions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from capabilities.core.providers.redaction import redact
from capabilities.core.side_by_side import SideBySideRow
from capabilities.core.translatable import insert_facts
from capabilities.labels import CONTENTS, capability_label
from capabilities.sentences import join_words
from routing_admin.console.base.content_policies import HTML_LABELS, LABELS
from routing_admin.console.history.fields import field_name
from routing_admin.console.matrix.cells import SOURCES
from routing_admin.core.configuration.diff import Change, ChangeKind, round_floats
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.files.entries import side_by_side

Text = str | Promise
READS = "capabilities.input"
"""The field of a service that lists which kinds of content its model can read."""
SPEAKING = frozenset({READS, "enabled"})
"""Fields whose new value is clear without the name of the field."""

BADGES: Mapping[ChangeKind, tuple[str, str, Text]] = {
    ChangeKind.ADDED: ("ok", "plus", pgettext_lazy("change", "New")),
    ChangeKind.CHANGED: ("acc", "refresh", pgettext_lazy("change", "Changed")),
    ChangeKind.REMOVED: ("bad", "bin", pgettext_lazy("change", "Removed")),
    ChangeKind.MOVED: ("acc", "list", pgettext_lazy("change", "Order")),
}
KINDS: Mapping[str, Text] = {
    "provider": gettext_lazy("provider"),
    "service": gettext_lazy("model service"),
    "route": gettext_lazy("task route"),
    "alias": gettext_lazy("alias"),
    "agent": gettext_lazy("agent"),
    "language": gettext_lazy("language"),
    "exchange_rate": gettext_lazy("exchange rate"),
    "budget": gettext_lazy("budget"),
    "configuration": gettext_lazy("configuration"),
}
ORDERS: Mapping[str, Text] = {
    "provider": gettext_lazy("order of the providers"),
    "service": gettext_lazy("order of the model services"),
    "route": gettext_lazy("order of the task routes"),
    "alias": gettext_lazy("order of the aliases"),
    "agent": gettext_lazy("order of the agents"),
    "language": gettext_lazy("order of the languages"),
    "exchange_rate": gettext_lazy("order of the exchange rates"),
    "budget": gettext_lazy("order of the budgets"),
}
ACTS: Mapping[str, Text] = {
    "agent.add": gettext_lazy("Agent added"),
    "agent.change": gettext_lazy("Agent changed"),
    "agent.delete": gettext_lazy("Agent deleted"),
    "agent.put": gettext_lazy("Agent created at run time"),
    "alias.change": gettext_lazy("Alias set"),
    "alias.delete": gettext_lazy("Alias deleted"),
    "artifact.correct": gettext_lazy("Artifact corrected"),
    "artifact.delete": gettext_lazy("Artifact deleted"),
    "artifact.read": gettext_lazy("Artifact viewed"),
    "artifact.restore": gettext_lazy("Artifact restored"),
    "artifact.store": gettext_lazy("Artifact stored"),
    "audit.export": gettext_lazy("Audit log exported"),
    "budget.delete": gettext_lazy("Budget deleted"),
    "budget.save": gettext_lazy("Budget set"),
    "catalogue.drop": gettext_lazy("Shipped catalogue restored"),
    "catalogue.take": pgettext_lazy("act", "Catalogue refreshed"),
    "configuration.import": gettext_lazy("Configuration imported"),
    "configuration.export": gettext_lazy("Configuration exported"),
    "configuration.restore": gettext_lazy("Configuration restored"),
    "configuration.undo": gettext_lazy("Change undone"),
    "demo.load": gettext_lazy("Demo data loaded"),
    "demo.remove": pgettext_lazy("act", "Demo data deleted"),
    "drift.dismiss": gettext_lazy("Doubt about a model dismissed"),
    "environment.load": gettext_lazy("Loaded from the environment"),
    "exchange_rate.remove": gettext_lazy("Exchange rate deleted"),
    "exchange_rate.set": gettext_lazy("Exchange rate set"),
    "alert.acknowledge": gettext_lazy("Alert acknowledged"),
    "alert.withdraw": gettext_lazy("Acknowledgement withdrawn"),
    "alert.mute": gettext_lazy("Alert muted"),
    "alert.unmute": gettext_lazy("Alert unmuted"),
    "alert.webhook": gettext_lazy("Webhook of alerts set"),
    "alert.webhook_delete": gettext_lazy("Webhook of alerts deleted"),
    "alert.test": gettext_lazy("Test alert sent"),
    "installation.backup": gettext_lazy("Backed up"),
    "installation.content_html": gettext_lazy("Form of web pages set"),
    "installation.content_policy": gettext_lazy("Content policy set"),
    "installation.content_text": gettext_lazy("Text of files set"),
    "installation.default_language": gettext_lazy("Default language set"),
    "installation.prune": gettext_lazy("Pruned"),
    "installation.record_bodies": gettext_lazy("Body recording toggled"),
    "installation.restore": gettext_lazy("Restored from a backup"),
    "installation.retention": gettext_lazy("Retention set"),
    "installation.settings": gettext_lazy("Settings changed"),
    "key.change": gettext_lazy("Agent key changed"),
    "key.issue": gettext_lazy("Agent key issued"),
    "keys.rotate": gettext_lazy("Stored provider keys re-encrypted"),
    "key.revoke": gettext_lazy("Agent key revoked"),
    "key.roll": gettext_lazy("Agent key rotated"),
    "language.remove": gettext_lazy("Language deleted"),
    "language.save": gettext_lazy("Language saved"),
    "link.make": gettext_lazy("Link to an agent's page issued"),
    "link.revoke": gettext_lazy("Link to an agent's page revoked"),
    "provider.add": gettext_lazy("Provider added"),
    "provider.change": gettext_lazy("Provider changed"),
    "provider.delete": gettext_lazy("Provider deleted"),
    "provider.disable": gettext_lazy("Provider disabled"),
    "provider.enable": gettext_lazy("Provider enabled"),
    "provider.key_add": gettext_lazy("Provider key added"),
    "provider.key_change": gettext_lazy("Provider key changed"),
    "provider.key_origin": gettext_lazy("Variable's key allowed for an address"),
    "provider.key_remove": gettext_lazy("Provider key deleted"),
    "provider.drill": gettext_lazy("Fire drill started"),
    "provider.drill_end": gettext_lazy("Fire drill ended"),
    "provider.drill_stop": gettext_lazy("Fire drill stopped early"),
    "provider.try_again": gettext_lazy("Provider retried at once"),
    "request.read": gettext_lazy("Recorded bodies viewed"),
    "request.send": gettext_lazy("Sent for real"),
    "route.add": gettext_lazy("Task route added"),
    "route.change": gettext_lazy("Task route changed"),
    "route.delete": gettext_lazy("Task route deleted"),
    "secrets.add": gettext_lazy("New secrets created"),
    "secrets.drop": gettext_lazy("Old secrets removed"),
    "service.add": gettext_lazy("Model service added"),
    "service.capabilities": gettext_lazy("Capabilities changed"),
    "service.change": gettext_lazy("Model service changed"),
    "model.replace": gettext_lazy("Model replaced by its successor"),
    "service.delete": gettext_lazy("Model service deleted"),
    "service.nightly": gettext_lazy("Nightly probe toggled"),
    "service.probe_nightly": gettext_lazy("Changed by the nightly probe"),
    "session.end": gettext_lazy("Sessions ended"),
    "token.issue": pgettext_lazy("act", "Token issued"),
    "token.revoke": gettext_lazy("Token revoked"),
    "token.use": gettext_lazy("Token used, the first time that day"),
    "user.deactivate": gettext_lazy("User deactivated"),
    "user.invite": gettext_lazy("User invited"),
    "user.join": gettext_lazy("Invitation accepted"),
    "user.link": gettext_lazy("Sign-in link issued"),
    "user.password": gettext_lazy("Password changed"),
    "user.reactivate": gettext_lazy("User reactivated"),
    "user.role": gettext_lazy("Role changed"),
    "user.sign_in": gettext_lazy("Signed in"),
    "user.sign_in_failed": gettext_lazy("Sign-in failed"),
    "user.sign_in_refused": gettext_lazy("Sign-in refused"),
    "user.sign_out": gettext_lazy("Signed out"),
    "user.link_identity": gettext_lazy("Sign-in account linked"),
    "user.unlink": gettext_lazy("Sign-in account unlinked"),
    "user.withdraw": gettext_lazy("Invitation revoked"),
}
"""Labels of audited actions, by code. An action without a label is shown by its code."""
MAX_VALUE_CHARS = 200


MAX_ROWS = 100
"""Maximum number of diff lines on a page. The list of changes above the diff is always complete."""


def compare_texts(old: Configuration, new: Configuration) -> dict[str, Any]:
    """Return the files of two configurations side by side with masked keys, and the number of lines left out."""
    rows = side_by_side(old, new)
    return {"rows": [mask_row(row) for row in rows[:MAX_ROWS]], "more_rows": max(0, len(rows) - MAX_ROWS)}


def mask_row(row: SideBySideRow) -> SideBySideRow:
    return replace(row, left=_mask_line(row.left), right=_mask_line(row.right))


def _mask_line(line: str) -> str:
    # An exported `apiKey` is always a reference or a mask, so it can be shown.
    return line if line.lstrip().startswith('"apiKey": ') else redact(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """A configuration change as a list item: its badge, the entry's kind and name, and the new and previous values."""

    tone: str
    icon: str
    label: Text
    kind: Text
    name: str
    text: str
    was: str = ""
    field: str = ""
    path: str = ""

    @property
    def sentence(self) -> str:
        """The change as a sentence, without the previous value."""
        facts = {"kind": self.kind, "name": self.name, "field": self.field, "text": self.text}
        if not self.name:
            return f"{self.kind}{_(': ')}{self.text}"
        if self.path:
            template = _("Changed %(kind)s %(name)s: %(field)s is now %(text)s")
            if self.path in SPEAKING:
                template = _("Changed %(kind)s %(name)s: %(text)s")
            return insert_facts(template, facts)
        if self.icon == "bin":
            return insert_facts(_("Removed %(kind)s %(name)s"), facts)
        if self.text and not self.text.startswith("→"):
            return insert_facts(_("New %(kind)s %(name)s (%(text)s)"), facts)
        return f"{insert_facts(_('New %(kind)s %(name)s'), facts)} {self.text}".rstrip()


def action_label(code: str) -> Text:
    """Return the label of an action's code. A message that a user wrote is returned unchanged."""
    return ACTS.get(code, code)


def change_line(change: Change) -> ChangeLine:
    """Describe a change in the user's language. Text that looks like a key is masked."""
    change = replace(change, before=round_floats(change.before), after=round_floats(change.after))
    tone, icon, label = BADGES[change.action]
    kind = KINDS.get(change.kind, change.kind)
    if change.action is ChangeKind.MOVED:
        return ChangeLine(
            tone=tone,
            icon=icon,
            label=label,
            kind=ORDERS.get(change.kind, change.kind),
            name="",
            text=join_words(change.after),
        )
    if not change.field:
        entry = change.after if change.after is not None else change.before
        return ChangeLine(
            tone=tone, icon=icon, label=label, kind=kind, name=change.name, text=redact(_summary(change.kind, entry))
        )
    after = value_text(change.field, change.after)
    was = (
        ""
        if change.before in (None, "", {})
        else _("was: %(value)s") % {"value": value_text(change.field, change.before)}
    )
    tone, icon, label = BADGES[ChangeKind.CHANGED]
    if change.field == READS:
        after = _reading_text(change) or after
    name = field_name(change.field)
    return ChangeLine(
        tone=tone,
        icon=icon,
        label=label,
        kind=kind,
        name=change.name,
        text=redact(after),
        was=redact(was),
        field=name,
        path=change.field,
    )


def _reading_text(change: Change) -> str:
    # Show which kinds of content the model has gained and lost, so that users need not compare two lists.
    before, after = ([str(content) for content in side or ()] for side in (change.before, change.after))
    gained = [CONTENTS.get(word, capability_label(word)) for word in after if word not in before]
    lost = [CONTENTS.get(word, capability_label(word)) for word in before if word not in after]
    parts = [insert_facts(_("now reads %(kinds)s"), {"kinds": join_words(gained)})] if gained else []
    parts += [insert_facts(_("no longer reads %(kinds)s"), {"kinds": join_words(lost)})] if lost else []
    return join_words(parts)


def change_lines(changes: Iterable[Change]) -> list[ChangeLine]:
    return [change_line(change) for change in changes]


def stored_changes(values: Iterable[Mapping[str, Any]]) -> list[Change]:
    return [Change(**{**value, "action": ChangeKind(value["action"])}) for value in values]


def _summary(kind: str, entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return ""
    match kind:
        case "provider":
            host = urlsplit(str(entry.get("endpoint", ""))).hostname or entry.get("endpoint", "")
            return insert_facts(_("%(model)s at %(host)s"), {"model": entry.get("default_model", ""), "host": host})
        case "service":
            return f"{entry.get('provider', '')}/{entry.get('model', '')}"
        case "route":
            return _chain(entry.get("candidates", ()))
        case "alias":
            return f"→ {entry.get('target', '')}"
        case "agent":
            task = entry.get("task_type")
            return f"→ task:{task}" if task else f"→ {entry.get('service_id') or '–'}"
    return str(entry.get("directive", ""))


def _chain(candidates: Iterable[Any]) -> str:
    return " → ".join(
        f"{item['provider']}/{item['model']}" if item.get("model") else str(item["provider"]) for item in candidates
    )


def value_text(field: str, value: Any) -> str:
    """Return a field's value as text.

    A chain is joined with arrows and a list with commas. A boolean is yes or no, and any other value is short JSON.
    """
    if field == "candidates" and isinstance(value, list | tuple):
        return _chain_with_parameters(value)
    if field == "enabled":
        return _("enabled") if value else _("disabled")
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if value in (None, ""):
        return _("not set")
    if value in ({}, []):
        return _("nothing")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        labels = field.startswith("capabilities")
        return join_words(capability_label(item) if labels else item for item in value)
    if field.startswith("sources"):
        return str(SOURCES.get(value, value))
    if field in ("content_policy", "content.policy"):
        return str(LABELS.get(value, value))
    if field in ("content_html", "content.html"):
        return str(HTML_LABELS.get(value, value))
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_CHARS else text[:MAX_VALUE_CHARS] + "…"


def _chain_with_parameters(candidates: Iterable[Mapping[str, Any]]) -> str:
    parts = []
    for item in candidates:
        parameters = [
            f"{key} {value if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)}"
            for key in ("temperature", "max_tokens", "extra_body", "extra")
            if (value := item.get(key)) not in (None, {})
        ]
        parts.append(_chain([item]) + (f" ({', '.join(parameters)})" if parameters else ""))
    return " → ".join(parts)
