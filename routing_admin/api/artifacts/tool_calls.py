"""The tools that agents call over HTTP and MCP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from artifacts import library as actions
from artifacts.core.delivery.content_router import ArtifactContentRouter, ContentRouteResult
from artifacts.core.delivery.get_artifact import ArtifactNotFound, get_artifact
from artifacts.core.delivery.tools import TEXTS
from artifacts.library import queries as library
from artifacts.storage.content import RowStore
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.writing import CANNOT_BE_OPENED
from capabilities.core.texts.description import nearest_language
from capabilities.core.wire import WriteData, base64_text
from routing_admin.api import registry
from routing_admin.api.artifacts.describing import Describe, add_description
from routing_admin.api.artifacts.schemas import artifact_out
from routing_admin.api.artifacts.uploads import link_out
from routing_admin.configuration import snapshot
from routing_admin.dispatch.model_endpoints import build_registry, default_language, list_readers

if TYPE_CHECKING:
    from artifacts.models import Artifact
    from capabilities.actors import Actor

PAGE = 20
"""Default number of artifacts per page of `list_artifacts`."""
BRIEF = ("ref", "filename", "mimeType", "size", "kind", "createdAt", "type", "owner")
"""Fields of each artifact that `list_artifacts` returns to a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCaller:
    """The caller of a tool, and the language for file descriptions.

    `key` is the public part of the agent's key. `base_url` is the URL that the caller used for this server; links in
    answers start with it.
    """

    agent: str
    actor: Actor
    language: str
    key: str = ""
    base_url: str = ""


def choose_language(requested: str | None) -> str:
    return requested or default_language()


@dataclass(frozen=True, slots=True)
class ReadArtifact:
    """An artifact in a form that a model can read.

    If this form is only a description, `readers` names the agents that can read the artifact itself.
    """

    result: ContentRouteResult
    readers: tuple[str, ...] | None = None

    def as_json(self) -> dict[str, Any]:
        return {**self.result.as_json(), **({} if self.readers is None else {"suggestedAgents": list(self.readers)})}


def read_artifact(
    caller: ToolCaller,
    ref: str,
    *,
    service_id: str | None = None,
    offset: int | None = None,
    limit: int | None = None,
    write: WriteData = base64_text,
    describe: Describe | None = None,
) -> ReadArtifact | ArtifactNotFound:
    """Return the artifact in the form that the service, or the calling agent's service, can read.

    `write` encodes the file's data. `describe` is called to describe a file if the caller would otherwise receive only
    its metadata.
    """
    store, services = RowStore(caller.agent), build_registry(snapshot.current())
    service = service_id or agent_service_id(caller.agent)
    router = ArtifactContentRouter(services, write=write)
    result = get_artifact(store, router, ref, service, language=caller.language, offset=offset, limit=limit)
    if isinstance(result, ArtifactNotFound):
        return result
    if describe is not None:
        result = add_description(result, store.part(ref), describe)
    return ReadArtifact(result, _suggest_readers(result, ref, caller.agent))


def _suggest_readers(result: ContentRouteResult, ref: str, agent: str) -> tuple[str, ...] | None:
    # Look up the readers at each call, because they include agents that were created at run time.
    if result.delivery.outcome is not Outcome.DESCRIBED or result.delivery.reason.code in CANNOT_BE_OPENED:
        return None
    part = RowStore(agent).part(ref)
    return tuple(list_readers(snapshot.current(), part, agent)) if part else None


def agent_service_id(agent_id: str) -> str:
    """Return the id of the service that the agent's model uses, or "" if the agent has no model yet."""
    agent = snapshot.current().directory.get(agent_id)
    return (agent.service_id if agent else None) or ""


def _read(caller: ToolCaller, arguments: Mapping[str, Any]) -> ReadArtifact | ArtifactNotFound:
    return read_artifact(caller, arguments["ref"], offset=arguments.get("offset"), limit=arguments.get("limit"))


def _find_agents(caller: ToolCaller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    agents = snapshot.current().directory.find_capable(arguments["capability"], arguments.get("direction") or "input")
    return {"agents": agents}


def _describe_caller(caller: ToolCaller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return registry.describe_agent(caller.agent).model_dump(exclude_unset=True)


def _store(caller: ToolCaller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    # Text is stored immediately. For any other file, the model gets an upload link, because it cannot send bytes.
    filename, declared = arguments["filename"], arguments.get("mimeType") or ""
    if arguments.get("text") is None:
        size = arguments.get("size")
        offered = actions.offer_upload(caller.agent, caller.key, filename, declared, size)
        return link_out(offered, caller.base_url).model_dump()
    fields: actions.MetadataFields = {"owner": caller.agent, "filename": filename, "declared": declared}
    return _brief(actions.store_text(caller.actor, arguments["text"], **fields))


def _list(caller: ToolCaller, arguments: Mapping[str, Any]) -> dict[str, Any]:
    page = library.list_artifacts(
        owner=caller.agent,
        cursor=arguments.get("cursor") or "",
        limit=arguments.get("limit") or PAGE,
        q=arguments.get("q") or "",
        kind=arguments.get("kind") or "",
    )
    listed = {"artifacts": [_brief(row) for row in page.rows], "nextCursor": page.next_cursor}
    # `more` tells the model how to request the next page.
    return {**listed, "more": TEXTS[nearest_language(caller.language)]["more"]} if page.next_cursor else listed


def _brief(row: Artifact) -> dict[str, Any]:
    metadata = artifact_out(row).model_dump(mode="json", exclude_unset=True)
    return {name: metadata[name] for name in BRIEF if metadata[name] is not None}


ToolAnswer = ReadArtifact | ArtifactNotFound | dict[str, Any]

TOOLS: Mapping[str, Callable[[ToolCaller, Mapping[str, Any]], ToolAnswer]] = MappingProxyType(
    {
        "get_artifact": _read,
        "find_capable_agents": _find_agents,
        "store_artifact": _store,
        "get_my_capabilities": _describe_caller,
        "list_artifacts": _list,
    }
)
"""Maps each tool's name to its function. The `arguments` have already been checked against the tool's definition."""
