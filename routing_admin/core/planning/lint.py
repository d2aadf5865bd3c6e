"""Check the candidates of a saved or draft chain for problems, without calling any provider.

Each finding concerns a single candidate, because a later candidate may read what an earlier one cannot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from enum import StrEnum

from capabilities.core.providers.catalogue import Catalogue, Retirement, default_catalogue
from capabilities.core.providers.probes.drift import NO_DRIFTS, REFUTING_KINDS, DriftKind, Drifts, is_current
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.plan import Unusable, disabled_service

MEDIA = ("vision", "audio", "video", "file")
"""A model that lacks one of these capabilities receives a description instead of the content itself."""
NOTICE = timedelta(days=120)
"""How long in advance a model's retirement is reported."""


class Finding(StrEnum):
    MISSING = "missing"
    """No provider has this name, so the candidate is skipped."""
    DISABLED = "disabled"
    """The provider or the model service is disabled, so the candidate is skipped."""
    NO_KEY = "no_key"
    """The provider has no usable key, so the candidate is skipped."""
    ORIGIN_REFUSED = "origin_refused"
    """The provider's origin may not be called, so the candidate is skipped."""
    UNREACHABLE = "unreachable"
    """An earlier candidate has the same provider and model, so this one is skipped."""
    TEXT_ONLY = "text_only"
    """No model service states the model's capabilities, so it counts as a text-only model."""
    PRIMARY = "primary"
    """The candidate is the first one that is not skipped."""
    CROSS_MODEL = "cross_model"
    """The candidate is the first one with a model other than the primary's, so its answers may differ in style."""
    READS_MORE = "reads_more"
    """The candidate reads content that all earlier candidates receive only as descriptions."""
    DOUBTFUL = "doubtful"
    """The model refused a capability that it declares, or a probe did not confirm that capability."""
    STOPPED = "stopped"
    """The nightly probe found that the model has lost a capability."""
    ENDED = "ended"
    """The vendor has retired the model."""
    ENDS = "ends"
    """The vendor will retire the model within the period `NOTICE`."""
    LAST = "last"
    """The candidate is the last one, so its error is returned to the caller."""


SKIPS = frozenset(
    {Finding.MISSING, Finding.DISABLED, Finding.NO_KEY, Finding.ORIGIN_REFUSED, Finding.UNREACHABLE},
)
"""Findings that cause a candidate to be skipped."""
OF_SKIP: Mapping[SkipReason, Finding] = {
    SkipReason.NO_KEY: Finding.NO_KEY,
    SkipReason.ORIGIN_REFUSED: Finding.ORIGIN_REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCandidate:
    """A candidate with its findings; `detail` says why its provider cannot be called.

    `loses` are media capabilities that an earlier candidate has and this one lacks, so that it receives descriptions.
    `gains` are media capabilities that no earlier candidate has. `drifts` is recent evidence that the capabilities are
    wrong. `retirement` is set if the model has ended or will end within the period `NOTICE`.
    """

    spec: CandidateSpec
    model: str
    service: ServiceSpec | None
    findings: tuple[Finding, ...] = ()
    detail: str = ""
    loses: tuple[str, ...] = ()
    gains: tuple[str, ...] = ()
    drifts: tuple[tuple[str, DriftKind], ...] = ()
    retirement: Retirement | None = None

    @property
    def capabilities(self) -> Capabilities:
        return self.service.effective_capabilities if self.service else TEXT_ONLY

    @property
    def skipped(self) -> bool:
        return not SKIPS.isdisjoint(self.findings)


@dataclass(frozen=True, slots=True)
class ChainLint:
    """A checked chain, and the capabilities that all callable candidates have."""

    candidates: tuple[CheckedCandidate, ...]
    guaranteed: Capabilities

    @property
    def callable(self) -> tuple[CheckedCandidate, ...]:
        return tuple(candidate for candidate in self.candidates if not candidate.skipped)


def lint(
    configuration: Configuration,
    route: RouteSpec,
    unusable: Mapping[str, Unusable] | None = None,
    drifts: Drifts = NO_DRIFTS,
    *,
    today: date | None = None,
    catalogue: Catalogue | None = None,
) -> ChainLint:
    """Return the findings about the candidates of a route, which may be unsaved.

    `unusable` maps each provider that cannot be called to the reason. `drifts` is recent evidence about the models'
    capabilities. If `today` is given, past retirements and those within the period `NOTICE` are looked up in
    `catalogue`, which defaults to the shipped one.
    """
    checked = [_add_drifts(candidate, drifts) for candidate in _check_candidates(configuration, route, unusable or {})]
    if today is not None:
        checked = [
            _check_end(configuration, candidate, today, catalogue or default_catalogue()) for candidate in checked
        ]
    live = [at for at, candidate in enumerate(checked) if not candidate.skipped]
    read: set[str] = set()
    candidates = []
    for at, candidate in enumerate(checked):
        if at not in live:
            # A skipped candidate is never called, so it neither loses nor gains capabilities.
            candidates.append(candidate)
            continue
        readable = {capability for capability in MEDIA if candidate.capabilities.has(capability)}
        loses = tuple(capability for capability in MEDIA if capability in read - readable)
        # The first candidate has no earlier candidate to compare with.
        gains = tuple(capability for capability in MEDIA if capability in readable - read and at != live[0])
        findings = (*candidate.findings, *_check_place(checked, live, at, bool(gains)))
        candidates.append(replace(candidate, findings=findings, loses=loses, gains=gains))
        read |= readable
    return ChainLint(tuple(candidates), _common([checked[at].capabilities for at in live]))


def _add_drifts(candidate: CheckedCandidate, drifts: Drifts) -> CheckedCandidate:
    seen = drifts.get((candidate.spec.provider, candidate.model), {}).items()
    found = tuple(
        (capability, kind) for capability, kind in seen if is_current(kind, candidate.capabilities.has(capability))
    )
    doubtful = [Finding.DOUBTFUL] if any(kind in REFUTING_KINDS for _, kind in found) else []
    stopped = [Finding.STOPPED] if any(kind is DriftKind.STOPPED for _, kind in found) else []
    return replace(candidate, findings=(*candidate.findings, *doubtful, *stopped), drifts=found) if found else candidate


def _check_end(
    configuration: Configuration, candidate: CheckedCandidate, today: date, catalogue: Catalogue
) -> CheckedCandidate:
    provider = configuration.provider(candidate.spec.provider)
    retirement = catalogue.retirement_at(provider.name, provider.endpoint, candidate.model) if provider else None
    if retirement is None or retirement.day > today + NOTICE:
        return candidate
    finding = Finding.ENDED if retirement.day <= today else Finding.ENDS
    return replace(candidate, findings=(*candidate.findings, finding), retirement=retirement)


def _check_place(checked: list[CheckedCandidate], live: list[int], at: int, gains: bool) -> Iterator[Finding]:
    if at == live[0]:
        yield Finding.PRIMARY
    if gains:
        yield Finding.READS_MORE
    if _is_first_other(checked, live, at):
        yield Finding.CROSS_MODEL
    if at == live[-1]:
        yield Finding.LAST


def _check_candidates(
    configuration: Configuration, route: RouteSpec, unusable: Mapping[str, Unusable]
) -> Iterator[CheckedCandidate]:
    seen: set[tuple[str, str]] = set()
    for spec in route.candidates:
        provider = configuration.provider(spec.provider)
        model = spec.model or (provider.default_model if provider else "")
        service = configuration.service_at(spec.provider, model)
        reason, detail = unusable.get(spec.provider, (None, ""))
        findings = []
        if provider is None:
            findings.append(Finding.MISSING)
        elif not provider.enabled or disabled_service(configuration, provider.name, model):
            findings.append(Finding.DISABLED)
        elif reason is not None:
            findings.append(OF_SKIP.get(reason, Finding.NO_KEY))
        if (spec.provider, model) in seen:
            findings.append(Finding.UNREACHABLE)
        elif provider is not None and service is None:
            findings.append(Finding.TEXT_ONLY)
        seen.add((spec.provider, model))
        yield CheckedCandidate(spec=spec, model=model, service=service, findings=tuple(findings), detail=detail)


def _is_first_other(chain: list[CheckedCandidate], live: list[int], at: int) -> bool:
    first = chain[live[0]].model
    return next((index for index in live if chain[index].model != first), None) == at


def _common(models: list[Capabilities]) -> Capabilities:
    if not models:
        return Capabilities((), ())
    return Capabilities(
        tuple(capability for capability in models[0].input if all(model.has(capability) for model in models)),
        tuple(capability for capability in models[0].output if all(capability in model.output for model in models)),
    )
