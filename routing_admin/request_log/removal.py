"""Remove requests together with the usage totals of their project."""

from __future__ import annotations

from django.db import transaction

from routing_admin.models import AttemptLog, RequestLog, UsageSum
from routing_admin.platform.databases.router import LOGS
from routing_admin.request_log.usage_sums import forget_rollups


def remove_requests(surface: str, project: str) -> None:
    """Remove all requests of a surface, and all usage totals of a project.

    No other requests may have this project as a label, because their usage would be removed from the totals, too.
    """
    requests, sums = RequestLog.objects.filter(surface=surface), UsageSum.objects.filter(project=project)
    with transaction.atomic(using=LOGS):
        AttemptLog.objects.filter(request__in=requests).delete()
        requests.delete()
        forget_rollups(set(sums.order_by().values_list("span", "start")))
        sums.delete()
