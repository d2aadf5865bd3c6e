"""The agents' API, composed of one router per subject. Every operation documents its error responses."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.openapi.schema import OpenAPISchema
from ninja.operation import Operation

from routing_admin.api.artifacts.endpoints import router as artifacts_router
from routing_admin.api.artifacts.uploads import router as uploads_router
from routing_admin.api.calls import build_json_schema
from routing_admin.api.errors import with_our_errors
from routing_admin.api.llm import router as llm_router
from routing_admin.api.reference import Reference, first_sentence
from routing_admin.api.requests import router as requests_router
from routing_admin.api.schemas import LimitedKeyAuth
from routing_admin.api.service_schemas import ErrorOut
from routing_admin.api.services import router as capabilities_router
from routing_admin.api.usage import router as usage_router
from routing_admin.console.base.api import AdminTokenAuth
from routing_admin.console.exchange.agent_api import router as configuration_router

SUBJECTS = ("exchange", "routes", "settings", "agents", "people", "requests", "history", "alerts", "drills")
"""Packages with routers of the administrators' API, in the API document's order. The first matching route wins."""


class AgentsApi(NinjaAPI):
    def get_openapi_operation_id(self, operation: Operation) -> str:
        # Client generators name methods after these ids. The id is only the view function's name, so it does not change
        # when the function moves to another module.
        return operation.view_func.__name__

    def get_openapi_schema(self, **options: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**options)
        error_response = {"description": "Refused, or failed", **build_json_schema(ErrorOut)}
        for path_item in document["paths"].values():
            for operation in path_item.values():
                operation["summary"] = first_sentence(operation["description"])
                operation["responses"]["default"] = error_response
        return document


def agents_api() -> NinjaAPI:
    """Return the agents' API, whose reference documentation is at /api/v1/docs."""
    api = AgentsApi(
        title="Agents' API",
        version="1",
        description="What agents call with their keys: services, agents, artifacts, messages, routes; and under "
        "`/admin` what administrators' scripts call with their tokens. All errors have the same shape.",
        urls_namespace="agents-api",
        auth=LimitedKeyAuth(),
        docs=Reference(),
    )
    routers = (capabilities_router, artifacts_router, uploads_router, configuration_router, llm_router)
    for router in (*routers, requests_router, usage_router):
        api.add_router("", router)
    for subject in SUBJECTS:
        api.add_router("/admin", f"routing_admin.console.{subject}.api.router", auth=AdminTokenAuth())
    return api


urls = with_our_errors(agents_api())
