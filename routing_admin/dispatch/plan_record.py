"""What was decided about a request, as its log tells it."""

from __future__ import annotations

from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.request_log.recorder import RequestRecorder


def record_plan(recorder: RequestRecorder, planned: PlannedRequest, task_type: str) -> None:
    """Tells the log what was decided; the words of the request only where they are recorded."""
    recorder.add_plan(
        planned.plan,
        task_type=task_type,
        stream=planned.stream,
        revision=planned.state.revision,
        words=planned.chat if planned.state.record_bodies else None,
        chat=planned.chat,
    )
