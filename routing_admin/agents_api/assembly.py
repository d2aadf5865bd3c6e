"""The agents' API put together from the apps' routers; its document says how every refusal looks (CONTRACT §4)."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema

from artifacts.api.endpoints import router as artifacts_router
from artifacts.api.uploads import router as uploads_router
from capabilities.api.calls import json_of
from capabilities.api.endpoints import router as capabilities_router
from capabilities.api.schemas import ErrorOut
from routing_admin.agents_api.administration.agents import router as admin_agents_router
from routing_admin.agents_api.administration.alerts import router as alerts_router
from routing_admin.agents_api.administration.aliases import router as aliases_router
from routing_admin.agents_api.administration.calls import AdminTokenAuth
from routing_admin.agents_api.administration.configuration import router as admin_configuration_router
from routing_admin.agents_api.administration.drills import router as drills_router
from routing_admin.agents_api.administration.entries import router as entries_router
from routing_admin.agents_api.administration.history import router as history_router
from routing_admin.agents_api.administration.installation import router as installation_router
from routing_admin.agents_api.administration.keys import router as keys_router
from routing_admin.agents_api.administration.links import router as links_router
from routing_admin.agents_api.administration.people import router as people_router
from routing_admin.agents_api.administration.requests import router as admin_requests_router
from routing_admin.agents_api.configuration import router as configuration_router
from routing_admin.agents_api.errors import with_our_errors
from routing_admin.agents_api.limits import LimitedKeyAuth
from routing_admin.agents_api.llm import router as llm_router
from routing_admin.agents_api.requests import router as requests_router
from routing_admin.agents_api.usage import router as usage_router


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
    entries = (entries_router, aliases_router, installation_router, keys_router, links_router, admin_agents_router)
    others = (people_router, admin_requests_router, history_router, alerts_router, drills_router)
    for each in (*entries, *others, admin_configuration_router):
        api.add_router("/admin", each, auth=AdminTokenAuth())
    return api


urls = with_our_errors(agents_api())
