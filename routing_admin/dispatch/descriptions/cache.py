"""What is known of the descriptions of one request's files: as it was stored, and as it was asked for since."""

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
from capabilities.core.describing.prompt import DescriptionKey, description_key, question_for, quote_words
from capabilities.core.message import FilePart, Role
from routing_admin.core.fallback.endings import UNAVAILABLE
from routing_admin.core.planning.plan import opening_of
from routing_admin.dispatch.descriptions.store import DescriptionOutcome, find_description, settle_description
from routing_admin.dispatch.plan import PlannedRequest
from routing_admin.platform.databases.unavailable import is_unavailable


@dataclass(slots=True)
class DescriptionCache:
    """The descriptions of a request's files; rows are read for them, so it is asked in threads.

    `outcomes` and `calls` are what this request has learnt, by the digest of the key; it stands for all candidates.
    """

    planned: PlannedRequest
    outcomes: dict[str, DescriptionOutcome] = field(default_factory=dict)
    calls: dict[str, DescriberCall] = field(default_factory=dict)
    lookups: dict[str, tuple[DescriptionKey, str]] = field(default_factory=dict)
    """Each key that was looked for, with the first answer behind its file, empty for none yet."""
    _conversation: str = ""
    _digests: dict[int, str] = field(default_factory=dict)

    @property
    def conversation(self) -> str:
        """By what this conversation is known again: its agent, and how it begins."""
        if not self._conversation:
            name = f"{self.planned.agent}\0{opening_of(self.planned.chat)}"
            self._conversation = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return self._conversation

    def plan_for(self, reader: Reader) -> PlannedRequest:
        """The request as it is written for that reader, with what is known."""
        words = replace(self.planned.words, description_of=partial(self.find, reader))
        return replace(self.planned, words=words)

    def question_of(self, reader: Reader, message: int) -> str | None:
        """What the describer is told of the user's words, where the policy says that it is."""
        return question_for(self.planned.chat, message) if ContentPolicy.QUESTION in reader.policies else None

    def key_of(self, reader: Reader, file: FilePart, describer: str, message: int) -> DescriptionKey:
        """The key of a description. Raises `UnreadableError` for bytes that are gone."""
        question = self.question_of(reader, message)
        return description_key(self._digest_of(file), describer, self.planned.words.language, question)

    def _digest_of(self, file: FilePart) -> str:
        found = self._digests.get(id(file.content))
        if found is None:
            found = self._digests[id(file.content)] = content_digest(file)
        return found

    def find(self, reader: Reader, file: FilePart, describer: str, message: int) -> ModelDescription:
        """What is known of a description. Raises `UnreadableError` for bytes that are gone."""
        key = self.key_of(reader, file, describer, message)
        self.lookups.setdefault(key.digest, (key, self.answer_behind(message)))
        outcome = self.outcomes.get(key.digest) or self._look_up(key)
        if outcome is None:
            return ModelDescription(DescriptionState.NOT_ASKED, describer)
        call = self.calls.get(key.digest)
        if outcome.fault:
            return ModelDescription(DescriptionState.FAILED, outcome.describer, call=call, fault=outcome.fault)
        text = quote_words(outcome.words, outcome.describer, self.planned.words.language)
        return ModelDescription(DescriptionState.BY_MODEL, outcome.describer, text, call)

    def answer_behind(self, message: int) -> str:
        """By what the conversation is known again once that message was answered; empty before."""
        later = self.planned.chat.messages[message + 1 :]
        answer = next((each for each in later if each.role is Role.ASSISTANT), None)
        return self.known_by(answer.text, (call.id for call in answer.tool_calls)) if answer else ""

    def known_by(self, text: str, calls: Iterable[str]) -> str:
        """By what the conversation is known again that continues with this answer: its words and calls."""
        name = "\0".join((self.conversation, "".join(text.split()), *calls))
        return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()

    def settle(self) -> None:
        """What was found and is delivered now stands, where rows told otherwise."""
        for digest, (key, answered) in self.lookups.items():
            outcome = self.outcomes.get(digest)
            if outcome is not None and outcome.unsettled:
                settle_description(key, self.conversation, outcome, answered)

    def settle_answer(self, answered: str) -> None:
        """Failures that were delivered before this answer stand for who continues with it."""
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
            outcome = DescriptionOutcome(
                describer=key.describer, fault=UNAVAILABLE
            )  # without rows nobody is asked, and paid, twice
        if outcome is not None:
            self.outcomes[key.digest] = outcome
        return outcome


def content_digest(file: FilePart) -> str:
    """The hash of a file's bytes, as it is stored or read now. Raises `UnreadableError`."""
    stored = getattr(file.content, "sha256", None)
    if isinstance(stored, str):
        return stored
    digest = hashlib.sha256()
    for block in file.content.blob().blocks() if file.content else ():
        digest.update(block)
    return digest.hexdigest()


# Two calls at once that want the same of a model: one asks, the other waits for what it hears.

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """The questions of this process that are under way, whichever event loop asks them."""

    def __init__(self) -> None:
        self._flights: dict[str, Future[T | None]] = {}
        self._lock = threading.Lock()

    async def join(self, key: str, ask: Callable[[], Awaitable[T]], is_for_all: Callable[[T], bool]) -> T:
        """What `ask` gives, or what a call before this one is given, where that is for all; its caller may leave."""
        while True:
            with self._lock:
                flight = self._flights.get(key)
                if flight is None:
                    own = self._flights[key] = Future()
            if flight is None:
                return await self._ask(key, own, ask)
            given = await asyncio.shield(asyncio.wrap_future(flight))
            if given is not None and is_for_all(given):
                return given

    async def _ask(self, key: str, own: Future[T | None], ask: Callable[[], Awaitable[T]]) -> T:
        given: T | None = None
        try:
            given = await ask()
            return given
        finally:
            with self._lock:
                del self._flights[key]
            own.set_result(given)
