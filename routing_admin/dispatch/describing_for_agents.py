"""Describe a file when an agent asks for it (with get_artifact, or in a message), outside any request to a model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from capabilities.access import Principal
from capabilities.core.delivery.adaptation import PartDelivery
from capabilities.core.delivery.decision import Outcome, decide
from capabilities.core.delivery.model_description import ModelDescription
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.delivery.slots import Slots
from capabilities.core.message import ChatRequest, FilePart, Message, Role, UnreadableError
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE
from routing_admin.core.planning.model_names import ModelNotAllowedError, NamedRoute, check_allowed, task_name
from routing_admin.core.planning.plan import default_route_to
from routing_admin.dispatch.descriptions.describing import Describing
from routing_admin.dispatch.model_endpoints import describing_route, find_describer
from routing_admin.dispatch.plan import plan_request
from routing_admin.dispatch.recorded import record_answer
from routing_admin.dispatch.send import Dispatch
from routing_admin.limits.reservations import make_reservation
from routing_admin.limits.rows import list_label_holders
from routing_admin.request_log.recorder import RequestRecorder
from routing_admin.upstream import run_sync

MAX_SECONDS = 180.0
"""Time limit for the agent's request, in seconds.

`descriptions.describing` sets the share of this time that a description may take.
"""


class RouteDescriber:
    """Lets a model describe files for agents, which takes time and costs tokens."""

    def describe(self, principal: Principal, request_id: str, file: FilePart, language: str) -> ModelDescription | None:
        """Return a model's description of the file, requesting it if necessary; None if no model can be asked."""
        state = snapshot.current()
        if not self._may_ask(state, principal):
            return None
        reader = Reader(
            Slots(), policies=frozenset({ContentPolicy.DESCRIBER}), describer_for=partial(find_describer, state)
        )
        delivery = decide(file, reader)
        if delivery.outcome is not Outcome.DESCRIBED or not delivery.describer:
            return None
        describing = self._describing(state, principal, request_id, file, language)
        try:
            return run_sync(describing.describe(PartDelivery(0, 0, file, delivery), reader, MAX_SECONDS))
        except UnreadableError:
            return None

    def _may_ask(self, state: Snapshot, principal: Principal) -> bool:
        route = describing_route(state)
        try:
            if route is not None:
                check_allowed(principal.rights, state.configuration, NamedRoute(route), task_name(DESCRIBE_ROUTE))
        except ModelNotAllowedError:
            return False
        return route is not None

    def _describing(
        self, state: Snapshot, principal: Principal, request_id: str, file: FilePart, language: str
    ) -> Describing:
        chat = ChatRequest((Message(Role.USER, (file,)),))
        route = default_route_to(state.configuration)
        planned = plan_request(state, replace(route, on_overflow="", on_drop=""), chat, agent=principal.agent)
        planned = replace(planned, style=replace(planned.style, language=language))
        recorder = RequestRecorder(request_id, "api")
        recorder.add_facts(agent=principal.agent, key=principal.key, labels=principal.labels)
        labels = list_label_holders(state.configuration, principal.key_owner, principal.labels)
        reservation = make_reservation((*principal.holders, *labels))
        return Describing(
            # There is no conversation, so a failure is not stored and the next call asks a model again.
            Dispatch(planned, request_id=request_id, reservation=reservation),
            recorder,
            record_answer,
            keeps_failures=False,
        )


describer = owned(RouteDescriber)
