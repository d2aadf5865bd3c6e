"""Database models of providers, model services, agents and their keys.

Only the actions in `routing_admin/console` change the configuration in these tables. They validate each change, and
record a revision and an audit event.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from capabilities.core.providers.probes.drift import DriftKind
from capabilities.core.vocabulary import Source


class StoredKey(models.Model):
    """An encrypted provider key, bound to the origin that may receive it. Revisions contain only its fingerprint."""

    fingerprint = models.CharField(max_length=64, unique=True)
    origin = models.CharField(max_length=300)
    ciphertext = models.TextField()
    last_four = models.CharField(max_length=4, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"…{self.last_four}"


class VariableOrigin(models.Model):
    """An origin to which the key in an environment variable may be sent.

    It is either the first origin that was used or one that an administrator allowed. A row remains after its provider
    is deleted, so that a restored revision needs no new permission.
    """

    variable = models.CharField(max_length=200)
    origin = models.CharField(max_length=600)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["variable", "origin"], name="one_row_per_variable_and_origin")]

    def __str__(self) -> str:
        return f"{self.variable} {self.origin}"


class Provider(models.Model):
    """A model API: its protocol, base URL and key. DeepSeek, for example, is a provider with the protocol `openai`."""

    class KeySource(models.TextChoices):
        NONE = "none", _("needs no key")
        ENVIRONMENT = "env", _("from the environment")
        STORED = "stored", _("stored, encrypted")

    name = models.CharField(_("name"), max_length=120, unique=True)
    display_name = models.CharField(_("display name"), max_length=200, blank=True)
    protocol = models.CharField(_("protocol"), max_length=30, default="openai")
    endpoint = models.CharField(_("base URL"), max_length=500)
    default_model = models.CharField(_("default model"), max_length=200)
    key_source = models.CharField(max_length=10, choices=KeySource.choices, default=KeySource.ENVIRONMENT)
    key_variable = models.CharField(max_length=200, blank=True)
    stored_key = models.ForeignKey(StoredKey, models.PROTECT, null=True, blank=True, related_name="providers")
    key_name = models.CharField(max_length=60, blank=True)
    key_enabled = models.BooleanField(default=True)
    env_name = models.CharField(max_length=120, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    quirks = models.JSONField(default=dict, blank=True)
    timeouts = models.JSONField(default=dict, blank=True)
    proxy = models.CharField(max_length=500, default="default")
    vendor_tools = models.JSONField(null=True, blank=True)
    in_routing_file = models.BooleanField(default=True)
    extra = models.JSONField(default=dict, blank=True)
    position = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["position", "id"]
        constraints = [
            models.CheckConstraint(condition=~Q(name=""), name="provider_has_a_name"),
            models.CheckConstraint(
                condition=Q(key_source="stored", stored_key__isnull=False) | ~Q(key_source="stored"),
                name="provider_stored_key_is_there",
            ),
        ]

    def __str__(self) -> str:
        return self.display_name or self.name


class ProviderKey(models.Model):
    """An additional key of a provider, beyond the key in the provider's row."""

    provider = models.ForeignKey(Provider, models.CASCADE, related_name="more_keys")
    name = models.CharField(_("name"), max_length=60)
    key_source = models.CharField(max_length=10, choices=Provider.KeySource.choices)
    key_variable = models.CharField(max_length=200, blank=True)
    stored_key = models.ForeignKey(StoredKey, models.PROTECT, null=True, blank=True, related_name="provider_keys")
    enabled = models.BooleanField(_("enabled"), default=True)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["provider", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="one_provider_key_per_name"),
            models.CheckConstraint(condition=~Q(name=""), name="provider_key_has_a_name"),
            models.CheckConstraint(
                condition=Q(key_source="stored", stored_key__isnull=False) | Q(key_source="env"),
                name="provider_key_is_somewhere",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class KeyTest(models.Model):
    """The latest test of a provider key. The names identify the provider and the key.

    It is not part of the configuration.
    """

    provider = models.CharField(max_length=120)
    key = models.CharField(max_length=60)
    at = models.DateTimeField()
    ms = models.FloatField()
    fault = models.CharField(max_length=40, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "key"], name="one_test_per_key")]

    def __str__(self) -> str:
        return f"{self.provider} {self.key}: {self.fault or 'ok'}"


class ProviderTest(models.Model):
    """The latest test of the provider with this name. It is not part of the configuration."""

    name = models.CharField(primary_key=True, max_length=120)
    at = models.DateTimeField()
    ms = models.FloatField()
    fault = models.CharField(max_length=40, blank=True)

    def __str__(self) -> str:
        return f"{self.name}: {self.fault or 'ok'}"


class Service(models.Model):
    """A model at a provider, and its capabilities. It corresponds to an entry in `llmservices.json`."""

    service_id = models.CharField(_("id"), max_length=200, unique=True)
    name = models.CharField(_("name"), max_length=200)
    provider = models.ForeignKey(Provider, models.PROTECT, related_name="services", verbose_name=_("provider"))
    model = models.CharField(_("model name"), max_length=200)
    base_url = models.CharField(max_length=500, blank=True)
    capability_tags = models.JSONField(default=list, blank=True)
    declares_capabilities = models.BooleanField(default=True)
    description = models.TextField(_("description"), blank=True)
    limits = models.JSONField(default=dict, blank=True)
    price = models.JSONField(default=dict, blank=True)
    content = models.JSONField(_("content policy"), default=dict, blank=True)
    timeouts = models.JSONField(default=dict, blank=True)
    extra_body = models.JSONField(default=dict, blank=True)
    routed = models.BooleanField(default=True)
    enabled = models.BooleanField(_("enabled"), default=True)
    extra = models.JSONField(default=dict, blank=True)
    position = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["position", "id"]
        constraints = [models.CheckConstraint(condition=~Q(service_id=""), name="service_has_an_id")]

    def __str__(self) -> str:
        return self.service_id

    @property
    def declares_all_capabilities(self) -> bool:
        """Return whether a capability without a row counts as absent. If not, it counts as unknown."""
        return self.declares_capabilities and not any(cell.source == Source.UNKNOWN for cell in self.capabilities.all())


class ServiceCapability(models.Model):
    """A cell of the capability matrix.

    It records whether a service has a capability for its input or output, and the source of this information.
    """

    class Side(models.TextChoices):
        INPUT = "input", _("input")
        OUTPUT = "output", _("output")

    service = models.ForeignKey(Service, models.CASCADE, related_name="capabilities")
    side = models.CharField(max_length=6, choices=Side.choices)
    name = models.CharField(max_length=100)
    supported = models.BooleanField(default=True)
    source = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Source], default=Source.DECLARED)
    position = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["side", "position", "id"]
        constraints = [
            models.UniqueConstraint(fields=["service", "side", "name"], name="one_cell_per_capability"),
            models.CheckConstraint(condition=~Q(name=""), name="capability_has_a_name"),
        ]

    def __str__(self) -> str:
        return f"{self.service_id} {self.side} {self.name}"


class ProbeTranscript(models.Model):
    """The exchange with a model that was probed for a capability. It is evidence and not part of the configuration.

    For each capability of a model, at most two are stored: the last one that `decided` whether the model has it, and a
    later one without a result.
    """

    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200)
    capability = models.CharField(max_length=100)
    decided = models.BooleanField()
    outcome = models.CharField(max_length=10)
    reason = models.CharField(max_length=20)
    at = models.DateTimeField()
    actor = models.CharField(max_length=150)
    question = models.TextField()
    mime_type = models.CharField(max_length=100)
    exchanges = models.JSONField(default=list)

    class Meta:
        ordering = ["capability", "-at"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "model", "capability", "decided"], name="one_last_probe")
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.capability}: {self.outcome}"


class Drift(models.Model):
    """Evidence from a request or a probe that contradicts a model's recorded capability, or that has changed it.

    It is not part of the configuration. `request` is the id of the request in which the model showed this. `revision`
    is the configuration revision that changed the capability. A dismissed row is not deleted, so that the same evidence
    is not shown again the next day.
    """

    provider = models.CharField(max_length=120)
    model = models.CharField(max_length=200)
    capability = models.CharField(max_length=100)
    kind = models.CharField(max_length=10, choices=[(kind.value, kind.value) for kind in DriftKind])
    at = models.DateTimeField()
    request = models.CharField(max_length=64, blank=True)
    status = models.PositiveIntegerField(null=True)
    revision = models.BigIntegerField(null=True)
    dismissed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-at"]
        constraints = [models.UniqueConstraint(fields=["provider", "model", "capability"], name="one_drift_per_cell")]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} {self.capability}: {self.kind}"


class NightlyProbe(models.Model):
    """A service that is probed every night, and the date of its last probe. It is not part of the configuration."""

    service_id = models.CharField(primary_key=True, max_length=200)
    last_night = models.DateField()

    def __str__(self) -> str:
        return f"{self.service_id}: {self.last_night}"


class CatalogueEdition(models.Model):
    """A version of the model catalogue, compressed. It is named after its sources.

    The installation's settings select the version in use.
    """

    name = models.CharField(max_length=300, unique=True)
    content = models.BinaryField()
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class Agent(models.Model):
    """A program that calls models. It uses either one service or the route of one task type."""

    class Origin(models.TextChoices):
        ADMINISTRATOR = "administrator", _("created in the browser")
        RUNTIME = "runtime", _("created at run time")

    agent_id = models.CharField(_("id"), max_length=120, unique=True)
    name = models.CharField(_("name"), max_length=200, blank=True)
    description = models.TextField(_("description"), blank=True)
    service = models.ForeignKey(Service, models.PROTECT, null=True, blank=True, related_name="agents")
    task_type = models.CharField(_("task type"), max_length=200, blank=True)
    origin = models.CharField(max_length=13, choices=Origin.choices, default=Origin.ADMINISTRATOR)
    owner = models.ForeignKey("self", models.CASCADE, null=True, blank=True, related_name="made")
    expires_at = models.DateTimeField(null=True, blank=True)
    limits = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    version = models.PositiveIntegerField(default=1)

    class Meta:
        ordering = ["agent_id"]
        constraints = [
            models.CheckConstraint(condition=~Q(agent_id=""), name="agent_has_an_id"),
            models.CheckConstraint(
                condition=Q(service__isnull=True) | Q(task_type=""), name="agent_uses_service_or_route"
            ),
        ]

    def __str__(self) -> str:
        return self.agent_id


class AgentKey(models.Model):
    """An agent's key. Its secret is stored only as an HMAC, and its row is found by the public id in the key.

    `signed_with` names the signing secret of the HMAC, and is empty for old keys. `terms` contains the key's limits and
    labels (`KeyTerms`), and `issued_terms` the terms with which the key was issued. Later changes to `terms` are
    part of the configuration and can be undone.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="keys")
    public_id = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    signed_with = models.CharField(max_length=16, blank=True, default="")
    label = models.CharField(max_length=100, blank=True)
    scopes = models.JSONField(default=list)
    terms = models.JSONField(default=dict, blank=True)
    issued_terms = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"ra_{self.public_id}…"


class AgentLink(models.Model):
    """A read-only link to an agent's own page, for the agent's developer. Its secret is stored like a key's secret.

    With `with_bodies`, the page shows the recorded bodies of the agent's calls. `signed_with` names the signing secret
    of the HMAC.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="links")
    name = models.CharField(max_length=100)
    public_id = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    signed_with = models.CharField(max_length=16)
    with_bodies = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"rap_{self.public_id}…"
