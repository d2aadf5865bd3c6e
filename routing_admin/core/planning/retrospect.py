"""What a draft of a route would have changed for requests of the past: nobody is called, and nothing is guessed.

Each request walks both chains by what is known of it. A candidate that failed then fails the same way, one that was
cooling is passed by, one that answered answers; of one that was not asked nobody knows, and there the walk ends.
How files go is decided by `adapt`, as for the real request and its preview.
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

WORDS = TextStyle()
"""The words in place of files; which they are changes no decision."""
UNLIMITED = 1 << 62
"""Bytes, where no limit is known."""
NO_READER = Reader(Slots())
"""Of a candidate that is not called."""


@dataclass(frozen=True, slots=True)
class WalkPlace:
    """A candidate of a chain as requests meet it; `is_callable` is False where the configuration passes it by."""

    provider: str
    model: str
    reader: Reader = NO_READER
    is_callable: bool = True

    @property
    def key(self) -> CandidateKey:
        """By what its attempts are found."""
        return self.provider, self.model

    @property
    def name(self) -> str:
        """`provider/model`, as pages write it."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


@dataclass(frozen=True, slots=True)
class WalkChain:
    """A route as requests walk it: its places in order, its way with errors, and what it passes candidates by for."""

    places: tuple[WalkPlace, ...] = ()
    policy: Policy = field(default_factory=Policy)
    refuses_drops: bool = False
    skips_overflow: bool = False


class WalkEnd(StrEnum):
    """How a request ends: by whom it is answered, or that this is not known since he was not asked then."""

    FIRST = "first"
    LATER = "later"
    NOBODY = "nobody"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A request's way along a chain: who is asked first, and who last; empty where nobody is.

    `place` is that of the last one in the chain, None where nobody answers; `forms` is how it gets each file, and
    `has_reader` whether anybody along the chain gets it other than in words about it.
    """

    end: WalkEnd
    first: str = ""
    last: str = ""
    place: int | None = None
    forms: tuple[DeliveryForm, ...] = ()
    has_reader: tuple[bool, ...] = ()


class _Stride(StrEnum):
    """What is known of one candidate for one request."""

    ANSWERS = "answers"
    GOES_ON = "goes_on"
    PASSES = "passes"
    COOLS = "cools"
    ENDS = "ends"
    UNKNOWN = "unknown"


def walk(request: PastRequest, chain: WalkChain) -> Walk:
    """The way of a request along a chain, as far as it is known."""
    chat = rebuild(request.files)
    forms = [_forms(chat, place) if place.is_callable else None for place in chain.places]
    had = [each for each in forms if each is not None]
    has_reader = tuple(any(each[at] is not DeliveryForm.DESCRIBED for each in had) for at in range(len(request.files)))
    first, resting = "", None
    for at, (place, form) in enumerate(zip(chain.places, forms, strict=True)):
        if form is None:
            continue
        stride = _stride_of(place, chain, request.tries.get(place.key))
        if stride is _Stride.COOLS and resting is None:
            resting = at
        if stride in (_Stride.PASSES, _Stride.COOLS):
            continue
        first = first or place.name
        if stride is _Stride.GOES_ON:
            continue
        if stride is _Stride.ENDS:
            break
        known = WalkEnd.LATER if at else WalkEnd.FIRST
        end = known if stride is _Stride.ANSWERS else WalkEnd.UNKNOWN
        return Walk(end=end, first=first, last=place.name, place=at, forms=form, has_reader=has_reader)
    if not first and resting is not None:  # all rest, so the one that wakes first is asked; the log does not say who
        place = chain.places[resting]
        return Walk(
            end=WalkEnd.UNKNOWN,
            first=place.name,
            last=place.name,
            place=resting,
            forms=forms[resting] or (),
            has_reader=has_reader,
        )
    return Walk(end=WalkEnd.NOBODY, first=first, has_reader=has_reader)


def _forms(chat: ChatRequest, place: WalkPlace) -> tuple[DeliveryForm, ...] | None:
    """How each file goes to a candidate; None where it is passed by for one that it cannot read."""
    adapted = adapt(chat, place.reader, WORDS)
    return None if isinstance(adapted, CannotRead) else tuple(each.delivery.form for each in adapted.deliveries)


def _stride_of(place: WalkPlace, chain: WalkChain, then: PastTry | None) -> _Stride:
    """What a candidate does with a request, by what it did then."""
    if then is None or then.outcome in (CANCELLED, ABORTED):
        return _Stride.UNKNOWN
    if then.outcome == OK:
        return _Stride.PASSES if chain.refuses_drops and then.drops else _Stride.ANSWERS
    if then.outcome in SKIPS:
        return SKIPS[then.outcome](place, chain)
    if then.outcome not in set(Fault):
        return _Stride.UNKNOWN
    failure = Failure(Fault(then.outcome), status=then.status)
    if failure.fault is Fault.UNSUPPORTED_PARAMETER and chain.refuses_drops:
        return _Stride.GOES_ON
    return _Stride.ENDS if chain.policy.verdict(failure).action is Action.RAISE else _Stride.GOES_ON


def _pass_if(condition: bool) -> _Stride:
    return _Stride.PASSES if condition else _Stride.UNKNOWN


SKIPS: Mapping[str, Callable[[WalkPlace, WalkChain], _Stride]] = {
    SkipReason.COOLING.value: lambda _, __: _Stride.COOLS,
    SkipReason.OTHER_PROTOCOL.value: lambda _, __: _Stride.PASSES,
    SkipReason.OTHER_MODEL.value: lambda _, __: _Stride.PASSES,
    SkipReason.WOULD_DROP.value: lambda _, chain: _pass_if(chain.refuses_drops),
    SkipReason.TOO_LONG.value: lambda _, chain: _pass_if(chain.skips_overflow),
    SkipReason.CANNOT_READ.value: lambda place, _: _pass_if(ContentPolicy.NATIVE_ONLY in place.reader.policies),
    **dict.fromkeys(
        (
            *(SkipReason.MISSING.value, SkipReason.DISABLED.value, SkipReason.DUPLICATE.value),
            *(SkipReason.NO_KEY.value, SkipReason.ORIGIN_REFUSED.value),
        ),
        lambda _, __: _Stride.UNKNOWN,
    ),
}
"""What a candidate that was passed by then does now: what the configuration decides is decided by the present one."""


class DifferenceKind(StrEnum):
    """How a request goes otherwise than before, in the order in which it is told."""

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
"""What differs, and in which kind of file or for which candidate; empty where it is neither."""


@dataclass(frozen=True, slots=True)
class PastPair:
    """A request and both of its ways; `file` is the one that a difference is about, if it is about one."""

    request: PastRequest
    before: Walk
    after: Walk
    file: int | None = None


@dataclass(frozen=True, slots=True)
class Retrospect:
    """What a draft would have changed: the requests of each difference, and how all of them end and get their files.

    `ends` and `files` are for the route before and for the draft; `files` counts forms.
    """

    count: int
    differences: Mapping[DifferenceKey, tuple[PastPair, ...]]
    ends: tuple[Counter[WalkEnd], Counter[WalkEnd]]
    files: tuple[Counter[DeliveryForm], Counter[DeliveryForm]]


def look_back(requests: Iterable[PastRequest], before: WalkChain, after: WalkChain) -> Retrospect:
    """Every request along both chains; those of the same shape walk once."""
    memory: dict[tuple[object, ...], tuple[Walk, Walk]] = {}
    room = min(map(_room_of, (*before.places, *after.places)), default=0)
    pairs = []
    for request in requests:
        shape = request.shape(room)
        if shape not in memory:
            memory[shape] = walk(request, before), walk(request, after)
        pairs.append(PastPair(request, *memory[shape]))
    found: dict[DifferenceKey, list[PastPair]] = {}
    for pair in pairs:
        for (kind, word), file in _differences(pair):
            found.setdefault((kind, word), []).append(
                PastPair(pair.request, pair.before, pair.after, file) if file is not None else pair
            )
    order = list(DifferenceKind)
    told = sorted(found, key=lambda key: (order.index(key[0]), key[1]))
    return Retrospect(
        len(pairs),
        {key: tuple(found[key]) for key in told},
        (Counter(each.before.end for each in pairs), Counter(each.after.end for each in pairs)),
        (_count_forms(each.before for each in pairs), _count_forms(each.after for each in pairs)),
    )


def _room_of(place: WalkPlace) -> int:
    """So many bytes on the wire have room in every place for files of a candidate, however they are spread."""
    slots = place.reader.slots
    limits = [slots.max_request_bytes or UNLIMITED]
    for slot in slots.by_kind.values():
        limits += [slot.max_bytes or UNLIMITED, slot.max_total_bytes or UNLIMITED]
    return min(limits)


def _count_forms(walks: Iterable[Walk]) -> Counter[DeliveryForm]:
    return Counter(form for each in walks for form in each.forms)


def _differences(pair: PastPair) -> Iterator[tuple[DifferenceKey, int | None]]:
    """How one request goes otherwise: each difference once, with the first file that shows it."""
    before, after = pair.before, pair.after
    if before == after:
        return
    yield from (((kind, ""), None) for kind in _ends_otherwise(before, after))
    if before.first and after.first and before.first != after.first:
        yield (DifferenceKind.FIRST_CHANGES, after.first), None
    if after.end is WalkEnd.UNKNOWN and (before.end, before.last) != (after.end, after.last):
        yield (DifferenceKind.UNKNOWN, after.last), None
    yield from _of_files(pair, before.has_reader, after.has_reader, DifferenceKind.HAS_READER, DifferenceKind.NO_READER)
    if before.forms and after.forms:
        then, now = _arrivals(before), _arrivals(after)
        yield from _of_files(pair, then, now, DifferenceKind.KEEPS_FILE, DifferenceKind.LOSES_FILE)


def _arrivals(walk: Walk) -> list[bool]:
    """Whether each file reaches the last one other than in words about it."""
    return [form is not DeliveryForm.DESCRIBED for form in walk.forms]


def _ends_otherwise(before: Walk, after: Walk) -> Iterator[DifferenceKind]:
    answered = (WalkEnd.FIRST, WalkEnd.LATER)
    if after.end is WalkEnd.NOBODY and before.end in answered:
        yield DifferenceKind.FAILS
    elif before.end is WalkEnd.NOBODY and after.end in answered:
        yield DifferenceKind.ANSWERS
    elif before.end is WalkEnd.FIRST and after.place:
        yield DifferenceKind.FALLS_BACK
    elif before.place and after.end is WalkEnd.FIRST:
        yield DifferenceKind.STAYS


def _of_files(
    pair: PastPair, before: Sequence[bool], after: Sequence[bool], more: DifferenceKind, less: DifferenceKind
) -> Iterator[tuple[DifferenceKey, int]]:
    """For each kind of file the first that has more now, and the first that has less."""
    firsts: dict[DifferenceKey, int] = {}
    for at, file in enumerate(pair.request.files):
        if before[at] != after[at]:
            firsts.setdefault((more if after[at] else less, file.kind.value), at)
    yield from firsts.items()
