"""What do the pages of task routes need to know? The row of one; what they show of all stands in the snapshot."""

from __future__ import annotations

from routing_admin.models import TaskRoute


def find_route(task_type: str) -> TaskRoute | None:
    """The row of that task type's route; None when there is none."""
    return TaskRoute.objects.filter(task_type=task_type).first()


def find_route_with_chain(task_type: str) -> TaskRoute | None:
    """The same with its candidates and their providers read; three queries."""
    return TaskRoute.objects.filter(task_type=task_type).prefetch_related("candidates__provider").first()
