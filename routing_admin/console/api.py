"""The agents' API put together from the apps' routers; its document says how every refusal looks (CONTRACT §4)."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from routing_admin.api.artifacts.endpoints import router as artifacts_router
from routing_admin.api.artifacts.uploads import router as uploads_router
from routing_admin.api.calls import json_of
from routing_admin.api.errors import with_our_errors
from routing_admin.api.llm import router as llm_router
from routing_admin.api.requests import router as requests_router
from routing_admin.api.schemas import LimitedKeyAuth
from routing_admin.api.service_schemas import ErrorOut
from routing_admin.api.services import router as capabilities_router
from routing_admin.api.usage import router as usage_router
from routing_admin.console.agents.api import router as admin_agents_router
from routing_admin.console.alerts.api import router as alerts_router
from routing_admin.console.base.api import AdminTokenAuth
from routing_admin.console.drills.api import router as drills_router
from routing_admin.console.exchange.agent_api import router as configuration_router
from routing_admin.console.exchange.api import router as admin_configuration_router
from routing_admin.console.history.api import router as history_router
from routing_admin.console.people.api import router as people_router
from routing_admin.console.requests.api import router as admin_requests_router
from routing_admin.console.routes.alias_api import router as aliases_router
from routing_admin.console.settings.api import router as installation_router


class AgentsApi(NinjaAPI):
    """The API, whose description says of every call how a refusal looks."""

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        """The OpenAPI document."""
        document = super().get_openapi_schema(**options)
        refused = {"description": "Refused, or failed", **json_of(ErrorOut)}
        for item in document["paths"].values():
            for operation in item.values():
                operation["responses"]["default"] = refused
        return document


def agents_api() -> NinjaAPI:
    """The API of all apps; docs at /api/v1/docs."""
    api = AgentsApi(
        title="Agents' API",
        version="1",
        description="What agents call with their keys: services, agents, artifacts, messages, routes; and under "
        "`/admin` what administrators' scripts call with their tokens. All errors have the same shape.",
        urls_namespace="agents-api",
        auth=LimitedKeyAuth(),
    )
    own = (capabilities_router, artifacts_router, uploads_router, configuration_router, llm_router)
    for each in (*own, requests_router, usage_router):
        api.add_router("", each)
    entries = (admin_configuration_router, aliases_router, installation_router, admin_agents_router)
    others = (people_router, admin_requests_router, history_router, alerts_router, drills_router)
    for each in (*entries, *others):
        api.add_router("/admin", each, auth=AdminTokenAuth())
    return api


urls = with_our_errors(agents_api())
