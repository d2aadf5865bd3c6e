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
from routing_admin.agents_api.configuration import router as configuration_router
from routing_admin.agents_api.errors import with_our_errors
from routing_admin.agents_api.limits import LimitedKeyAuth
from routing_admin.agents_api.llm import router as llm_router
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
        description="What agents ask: services, agents, artifacts, messages, routes. Errors all have one shape.",
        urls_namespace="agents-api",
        auth=LimitedKeyAuth(),
    )
    for each in (capabilities_router, artifacts_router, uploads_router, configuration_router, llm_router, usage_router):
        api.add_router("", each)
    return api


urls = with_our_errors(agents_api())
