"""Cache the descriptions of a request's files, both stored and newly requested ones."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from capabilities.core.delivery.model_description import DescriberCall, DescriptionState, ModelDescription
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.describing.prompt import DescriptionKey, description_key, question_for, quote_text
from capabilities.core.message import FilePart, Role
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.core.planning.plan import opening_text
from routing_admin.dispatch.descriptions.store import DescriptionOutcome, find_description, settle_description
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.platform.databases.unavailable import is_unavailable


@dataclass(slots=True)
class DescriptionCache:
    """Descriptions of a request's files, for all of its candidates.

    Use it in a thread, because lookups read the database. The keys of `outcomes` and `calls` are digests of description
    keys.
    """

    planned: PlannedRequest
    outcomes: dict[str, DescriptionOutcome] = field(default_factory=dict)
    calls: dict[str, DescriberCall] = field(default_factory=dict)
    lookups: dict[str, tuple[DescriptionKey, str]] = field(default_factory=dict)
    """Description keys that were looked up, each with the id of the first answer after the file, or "" if there is
    none.
    """
    _conversation: str = ""
    _digests: dict[int, str] = field(default_factory=dict)

    @property
    def conversation(self) -> str:
        if not self._conversation:
            name = f"{self.planned.agent}\0{opening_text(self.planned.chat)}"
            self._conversation = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self._conversation

    def plan_for(self, reader: Reader) -> PlannedRequest:
        """Return the planned request, set to look up the descriptions for this reader in this cache."""
        style = replace(self.planned.style, description_of=partial(self.find, reader))
        return replace(self.planned, style=style)

    def find_question(self, reader: Reader, message: int) -> str | None:
        return question_for(self.planned.chat, message) if ContentPolicy.QUESTION in reader.policies else None

    def description_key(self, reader: Reader, file: FilePart, describer: str, message: int) -> DescriptionKey:
        """Return the key of a file's description; raise `UnreadableError` if the file's bytes no longer exist."""
        question = self.find_question(reader, message)
        return description_key(self._file_digest(file), describer, self.planned.style.language, question)

    def _file_digest(self, file: FilePart) -> str:
        digest = self._digests.get(id(file.content))
        if digest is None:
            digest = self._digests[id(file.content)] = content_digest(file)
        return digest

    def find(self, reader: Reader, file: FilePart, describer: str, message: int) -> ModelDescription:
        """Return the description, its failure, or `NOT_ASKED`.

        Raise `UnreadableError` if the file's bytes no longer exist.
        """
        key = self.description_key(reader, file, describer, message)
        self.lookups.setdefault(key.digest, (key, self.answer_id_after(message)))
        outcome = self.outcomes.get(key.digest) or self._look_up(key)
        if outcome is None:
            return ModelDescription(DescriptionState.NOT_ASKED, describer)
        call = self.calls.get(key.digest)
        if outcome.fault:
            return ModelDescription(DescriptionState.FAILED, outcome.describer, call=call, fault=outcome.fault)
        text = quote_text(outcome.words, outcome.describer, self.planned.style.language)
        return ModelDescription(DescriptionState.BY_MODEL, outcome.describer, text, call)

    def answer_id_after(self, message: int) -> str:
        """Return the id of the conversation that includes the first answer after a message, or "" if there is none."""
        later = self.planned.chat.messages[message + 1 :]
        answer = next((later_message for later_message in later if later_message.role is Role.ASSISTANT), None)
        return self.conversation_after(answer.text, (call.id for call in answer.tool_calls)) if answer else ""

    def conversation_after(self, text: str, calls: Iterable[str]) -> str:
        """Return the id of the conversation that continues with this answer."""
        name = "\0".join((self.conversation, "".join(text.split()), *calls))
        return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()

    def settle(self) -> None:
        """In the database, mark as final the outcomes that a model has received."""
        for digest, (key, answered) in self.lookups.items():
            outcome = self.outcomes.get(digest)
            if outcome is not None and outcome.unsettled:
                settle_description(key, self.conversation, outcome, answered)

    def settle_answer(self, answered: str) -> None:
        """Store the failures that a model has received, for the conversation that continues with its answer."""
        for digest, (key, earlier) in self.lookups.items():
            outcome = self.outcomes.get(digest)
            if outcome is not None and outcome.fault and not earlier:
                settle_description(key, self.conversation, outcome, answered)

    def _look_up(self, key: DescriptionKey) -> DescriptionOutcome | None:
        try:
            outcome = find_description(key, self.conversation, self.lookups[key.digest][1])
        except Exception as error:
            if not is_unavailable(error):
                raise
            # While the database is unavailable, no model is called: its description could not be stored, and other
            # requests would have to pay for it again.
            outcome = DescriptionOutcome(describer=key.describer, fault=UNAVAILABLE)
        if outcome is not None:
            self.outcomes[key.digest] = outcome
        return outcome


def content_digest(file: FilePart) -> str:
    """Return the SHA-256 hash of a file's bytes, either stored or computed now. Raise `UnreadableError`."""
    stored = getattr(file.content, "sha256", None)
    if isinstance(stored, str):
        return stored
    digest = hashlib.sha256()
    for block in file.content.blob().blocks() if file.content else ():
        digest.update(block)
    return digest.hexdigest()


T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Combines concurrent calls with the same key in this process, across event loops.

    The first call does the work, and the others wait for its result.
    """

    def __init__(self) -> None:
        self._flights: dict[str, Future[T | None]] = {}
        self._lock = threading.Lock()

    async def join(self, key: str, ask: Callable[[], Awaitable[T]], is_for_all: Callable[[T], bool]) -> T:
        """Return the result of `ask`, or that of a running call with the same key if `is_for_all` accepts it."""
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    new_flight = self._flights[key] = Future()
            if flight is None:
                return await self._ask(key, new_flight, ask)
            # Shield the future, so that a caller that disconnects does not cancel the call for the others.
            result = await asyncio.shield(asyncio.wrap_future(flight))
            if result is not None and is_for_all(result):
                return result

    async def _ask(self, key: str, flight: Future[T | None], ask: Callable[[], Awaitable[T]]) -> T:
        result: T | None = None
        try:
            result = await ask()
            return result
        finally:
            with self._lock:
                del self._flights[key]
            flight.set_result(result)
