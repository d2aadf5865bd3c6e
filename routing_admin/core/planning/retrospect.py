"""Replay logged requests along a route's draft.

Nothing is called and nothing is guessed. Each request is replayed along the old and the new chain, and each candidate
does what it did according to the log: it fails in the same way, is skipped because of a cooldown, or answers. If the
replay reaches a candidate that was not called, the result is unknown. `adapt` decides how files are delivered, as for a
real request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from capabilities.core.delivery.adaptation import CannotRead, TextStyle, adapt
from capabilities.core.delivery.decision import DeliveryForm
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.delivery.slots import Slots
from capabilities.core.message import ChatRequest
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import ABORTED, CANCELLED, OK, SkipReason
from routing_admin.core.fallback.policy import Policy
from routing_admin.core.fallback.table import Action
from routing_admin.core.planning.past_requests import CandidateKey, PastRequest, PastTry, rebuild

TEXT_STYLE = TextStyle()
"""Wording of descriptions in a replay. Any style would do, because no decision depends on it."""
UNLIMITED = 1 << 62
"""Size limit in bytes if no limit is known."""
NO_READER = Reader(Slots())
"""Placeholder for the capabilities of a candidate that is not called."""


@dataclass(frozen=True, slots=True)
class WalkCandidate:
    """A candidate of a chain; `is_callable` is False if the configuration makes requests skip it."""

    provider: str
    model: str
    reader: Reader = NO_READER
    is_callable: bool = True

    @property
    def key(self) -> CandidateKey:
        return self.provider, self.model

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(frozen=True, slots=True)
class WalkChain:
    """A route's candidates in order, its error policy, and its rules for skipping candidates."""

    places: tuple[WalkCandidate, ...] = ()
    policy: Policy = field(default_factory=Policy)
    refuses_drops: bool = False
    skips_overflow: bool = False


class WalkEnd(StrEnum):
    """How a replayed request ends: the primary or a later candidate answers it, none does, or the result is unknown."""

    FIRST = "first"
    LATER = "later"
    UNANSWERED = "unanswered"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The path that a request takes along a chain.

    `first` and `last` name the first and the last candidate that were called; they are empty if there was none. `place`
    is the position of the last candidate, None if there was no answer. `forms` contains the form in which that
    candidate receives each file. `has_reader` says for each file whether any candidate receives the file itself instead
    of a description.
    """

    end: WalkEnd
    first: str = ""
    last: str = ""
    place: int | None = None
    forms: tuple[DeliveryForm, ...] = ()
    has_reader: tuple[bool, ...] = ()


class _Step(StrEnum):
    ANSWERS = "answers"
    GOES_ON = "goes_on"
    PASSES = "passes"
    COOLS = "cools"
    ENDS = "ends"
    UNKNOWN = "unknown"


def walk(request: PastRequest, chain: WalkChain) -> Walk:
    """Return the path that a past request would take along a fallback chain, as far as the request log shows it."""
    chat = rebuild(request.files)
    forms = [_forms(chat, place) if place.is_callable else None for place in chain.places]
    delivered = [place_forms for place_forms in forms if place_forms is not None]
    has_reader = tuple(
        any(place_forms[at] is not DeliveryForm.DESCRIBED for place_forms in delivered)
        for at in range(len(request.files))
    )
    first, first_cooling = "", None
    for at, (place, form) in enumerate(zip(chain.places, forms, strict=True)):
        if form is None:
            continue
        stride = _find_step(place, chain, request.tries.get(place.key))
        if stride is _Step.COOLS and first_cooling is None:
            first_cooling = at
        if stride in (_Step.PASSES, _Step.COOLS):
            continue
        first = first or place.name
        if stride is _Step.GOES_ON:
            continue
        if stride is _Step.ENDS:
            break
        known = WalkEnd.LATER if at else WalkEnd.FIRST
        end = known if stride is _Step.ANSWERS else WalkEnd.UNKNOWN
        return Walk(end=end, first=first, last=place.name, place=at, forms=form, has_reader=has_reader)
    # All candidates are cooling down, so the one that recovers first would be called, but the log does not say which.
    if not first and first_cooling is not None:
        place = chain.places[first_cooling]
        return Walk(
            end=WalkEnd.UNKNOWN,
            first=place.name,
            last=place.name,
            place=first_cooling,
            forms=forms[first_cooling] or (),
            has_reader=has_reader,
        )
    return Walk(end=WalkEnd.UNANSWERED, first=first, has_reader=has_reader)


def _forms(chat: ChatRequest, place: WalkCandidate) -> tuple[DeliveryForm, ...] | None:
    adapted = adapt(chat, place.reader, TEXT_STYLE)
    return None if isinstance(adapted, CannotRead) else tuple(item.delivery.form for item in adapted.deliveries)


def _find_step(place: WalkCandidate, chain: WalkChain, past_try: PastTry | None) -> _Step:
    # A cancelled or aborted attempt says nothing about the candidate.
    if past_try is None or past_try.outcome in (CANCELLED, ABORTED):
        return _Step.UNKNOWN
    if past_try.outcome == OK:
        # If something was dropped from the answered request, a chain that forbids this would have skipped the
        # candidate.
        return _Step.PASSES if chain.refuses_drops and past_try.drops else _Step.ANSWERS
    if past_try.outcome in SKIPS:
        return SKIPS[past_try.outcome](place, chain)
    if past_try.outcome not in set(Fault):
        return _Step.UNKNOWN
    failure = Failure(Fault(past_try.outcome), status=past_try.status)
    if failure.fault is Fault.UNSUPPORTED_PARAMETER and chain.refuses_drops:
        return _Step.GOES_ON
    return _Step.ENDS if chain.policy.verdict(failure).action is Action.RAISE else _Step.GOES_ON


def _pass_if(condition: bool) -> _Step:
    return _Step.PASSES if condition else _Step.UNKNOWN


SKIPS: Mapping[str, Callable[[WalkCandidate, WalkChain], _Step]] = {
    SkipReason.COOLING.value: lambda _, __: _Step.COOLS,
    SkipReason.OTHER_PROTOCOL.value: lambda _, __: _Step.PASSES,
    SkipReason.OTHER_MODEL.value: lambda _, __: _Step.PASSES,
    SkipReason.WOULD_DROP.value: lambda _, chain: _pass_if(chain.refuses_drops),
    SkipReason.TOO_LONG.value: lambda _, chain: _pass_if(chain.skips_overflow),
    SkipReason.CANNOT_READ.value: lambda place, _: _pass_if(ContentPolicy.NATIVE_ONLY in place.reader.policies),
    **dict.fromkeys(
        (
            *(SkipReason.MISSING.value, SkipReason.DISABLED.value, SkipReason.DUPLICATE.value),
            *(SkipReason.NO_KEY.value, SkipReason.ORIGIN_REFUSED.value),
        ),
        lambda _, __: _Step.UNKNOWN,
    ),
}
"""Maps each reason for which a logged request skipped a candidate to a function that decides what the candidate would
do in the replayed chain.
"""


class DifferenceKind(StrEnum):
    """Kinds of differences between two paths of a request, in display order."""

    FAILS = "fails"
    NO_READER = "no_reader"
    LOSES_FILE = "loses_file"
    FALLS_BACK = "falls_back"
    FIRST_CHANGES = "first_changes"
    UNKNOWN = "unknown"
    HAS_READER = "has_reader"
    KEEPS_FILE = "keeps_file"
    STAYS = "stays"
    ANSWERS = "answers"


DifferenceKey = tuple[DifferenceKind, str]
"""The kind of difference, and the kind of file or the candidate that it concerns, or "" if neither."""


@dataclass(frozen=True, slots=True)
class PastPair:
    """A request with its paths along the old and the new chain.

    `file` is the index of the file that a difference concerns, or None.
    """

    request: PastRequest
    before: Walk
    after: Walk
    file: int | None = None


@dataclass(frozen=True, slots=True)
class Retrospect:
    """Effects of a route's draft: the requests affected by each difference, and counts of endings and delivery forms.

    `ends` and `files` each contain the counts for the old and for the new chain.
    """

    count: int
    differences: Mapping[DifferenceKey, tuple[PastPair, ...]]
    ends: tuple[Counter[WalkEnd], Counter[WalkEnd]]
    files: tuple[Counter[DeliveryForm], Counter[DeliveryForm]]


def compare_routes(requests: Iterable[PastRequest], before: WalkChain, after: WalkChain) -> Retrospect:
    """Replay every request along the old and along the new chain."""
    memory: dict[tuple[object, ...], tuple[Walk, Walk]] = {}
    room = min(map(_max_bytes, (*before.places, *after.places)), default=0)
    pairs = []
    for request in requests:
        # Requests with the same `shape` take the same path, so each shape is replayed only once.
        shape = request.shape(room)
        if shape not in memory:
            memory[shape] = walk(request, before), walk(request, after)
        pairs.append(PastPair(request, *memory[shape]))
    found: dict[DifferenceKey, list[PastPair]] = {}
    for pair in pairs:
        for (kind, detail), file in _differences(pair):
            found.setdefault((kind, detail), []).append(
                PastPair(pair.request, pair.before, pair.after, file) if file is not None else pair
            )
    order = list(DifferenceKind)
    ordered = sorted(found, key=lambda key: (order.index(key[0]), key[1]))
    return Retrospect(
        len(pairs),
        {key: tuple(found[key]) for key in ordered},
        (Counter(pair.before.end for pair in pairs), Counter(pair.after.end for pair in pairs)),
        (_count_forms(pair.before for pair in pairs), _count_forms(pair.after for pair in pairs)),
    )


def _max_bytes(place: WalkCandidate) -> int:
    slots = place.reader.slots
    # A request up to this size is within all limits, no matter how its bytes are distributed among kinds of files.
    limits = [slots.max_request_bytes or UNLIMITED]
    for slot in slots.by_kind.values():
        limits += [slot.max_bytes or UNLIMITED, slot.max_total_bytes or UNLIMITED]
    return min(limits)


def _count_forms(walks: Iterable[Walk]) -> Counter[DeliveryForm]:
    return Counter(form for walk in walks for form in walk.forms)


def _differences(pair: PastPair) -> Iterator[tuple[DifferenceKey, int | None]]:
    before, after = pair.before, pair.after
    if before == after:
        return
    yield from (((kind, ""), None) for kind in _end_differences(before, after))
    if before.first and after.first and before.first != after.first:
        yield (DifferenceKind.FIRST_CHANGES, after.first), None
    if after.end is WalkEnd.UNKNOWN and (before.end, before.last) != (after.end, after.last):
        yield (DifferenceKind.UNKNOWN, after.last), None
    yield from _file_differences(
        pair, before.has_reader, after.has_reader, DifferenceKind.HAS_READER, DifferenceKind.NO_READER
    )
    if before.forms and after.forms:
        arrived_before, arrived_after = _received_files(before), _received_files(after)
        yield from _file_differences(
            pair, arrived_before, arrived_after, DifferenceKind.KEEPS_FILE, DifferenceKind.LOSES_FILE
        )


def _received_files(walk: Walk) -> list[bool]:
    return [form is not DeliveryForm.DESCRIBED for form in walk.forms]


def _end_differences(before: Walk, after: Walk) -> Iterator[DifferenceKind]:
    answered = (WalkEnd.FIRST, WalkEnd.LATER)
    if after.end is WalkEnd.UNANSWERED and before.end in answered:
        yield DifferenceKind.FAILS
    elif before.end is WalkEnd.UNANSWERED and after.end in answered:
        yield DifferenceKind.ANSWERS
    # The primary has position 0, so a truthy position is that of a fallback.
    elif before.end is WalkEnd.FIRST and after.place:
        yield DifferenceKind.FALLS_BACK
    elif before.place and after.end is WalkEnd.FIRST:
        yield DifferenceKind.STAYS


def _file_differences(
    pair: PastPair, before: Sequence[bool], after: Sequence[bool], gained: DifferenceKind, lost: DifferenceKind
) -> Iterator[tuple[DifferenceKey, int]]:
    firsts: dict[DifferenceKey, int] = {}
    for at, file in enumerate(pair.request.files):
        if before[at] != after[at]:
            firsts.setdefault((gained if after[at] else lost, file.kind.value), at)
    yield from firsts.items()
