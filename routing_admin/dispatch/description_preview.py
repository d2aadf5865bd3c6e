"""Look up stored file descriptions for pages, and request a description when a user asks for it."""

from __future__ import annotations

from collections.abc import Callable

from capabilities.core.delivery.adaptation import CannotRead
from capabilities.core.delivery.model_description import FindDescription, ModelDescription
from capabilities.core.delivery.obstacles import Reason, ReasonCode, make_reason
from capabilities.core.delivery.reader import Reader
from capabilities.core.delivery.tokens import Estimate
from capabilities.core.describing.describable import estimate_describing, obstacle_to_describing
from capabilities.core.message import ChatRequest, FilePart
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.fallback.chain import Call
from routing_admin.core.planning.params import apply_params
from routing_admin.core.planning.plan import default_route_to
from routing_admin.dispatch.descriptions.cache import DescriptionCache
from routing_admin.dispatch.descriptions.describing import Describing
from routing_admin.dispatch.descriptions.store import forget_failures
from routing_admin.dispatch.model_endpoints import list_describers
from routing_admin.dispatch.plan import PlannedRequest, plan_request
from routing_admin.dispatch.recorded import record_answer
from routing_admin.dispatch.send import Dispatch
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream.calls import run_sync


def find_descriptions(chat: ChatRequest, language: str | None) -> Callable[[Reader], FindDescription]:
    """Return a function that takes a model's reader and returns the function that looks up descriptions for this model.

    The lookups find the same descriptions as a request on the default route.
    """
    state = snapshot.current()
    descriptions = DescriptionCache(plan_request(state, default_route_to(state.configuration), chat, language=language))
    return lambda reader: descriptions.plan_for(reader).style.description_of


def find_refusal(file: FilePart) -> Reason | None:
    """Return why the first describing model cannot describe the file, or None if any describing model can."""
    describers = list_describers(snapshot.current())
    if not describers:
        return make_reason(ReasonCode.NO_DESCRIBER)
    reasons = [obstacle_to_describing(file, describer.reader) for describer in describers]
    return None if None in reasons else reasons[0]


def estimate_description(
    state: Snapshot, describer: str, file: FilePart, language: str | None = None
) -> Estimate | None:
    """Estimate the tokens that a describing model needs to read this file; None if the number cannot be estimated."""
    endpoint = next((candidate for candidate in list_describers(state) if candidate.name == describer), None)
    return estimate_describing(file, endpoint.reader, endpoint.target.model, None, language) if endpoint else None


def have_described(planned: PlannedRequest, recorder: RequestRecorder, request_id: str) -> ModelDescription | None:
    """Let a model describe the file in a previewed request now; return None if no model can describe it."""
    describing = Describing(Dispatch(planned, request_id=request_id), recorder, record_answer)
    # Normally a failure is stored for its conversation. Here, a user has explicitly asked for another attempt.
    forget_failures(describing.descriptions.conversation)
    call = Call(planned.plan.candidates[0], 1, planned.plan.timeouts)
    prepared = run_sync(describing.prepare(apply_params(planned.chat, call), planned.endpoint(0), call))
    if isinstance(prepared, CannotRead):
        return None
    return prepared.deliveries[0].delivery.description
