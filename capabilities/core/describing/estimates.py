"""About how many tokens it takes to have a file described, said before anybody is asked."""

from __future__ import annotations

from dataclasses import replace

from capabilities.core.delivery.adaptation import CannotRead, adapt
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.delivery.token_estimates import estimate_delivery, estimate_request
from capabilities.core.delivery.tokens import Estimate
from capabilities.core.delivery.writing import TextStyle
from capabilities.core.describing.prompt import describing_chat
from capabilities.core.message import FilePart


def estimate_describing(
    file: FilePart, describer: Reader, model: str, question: str | None, language: str | None
) -> Estimate | None:
    """What the describer would read, prompt and file together; None where nobody knows how it counts such a file."""
    seeing = replace(describer, policies=frozenset({ContentPolicy.CONVERT}))
    adapted = adapt(describing_chat(file, question, language), seeing, TextStyle(language))
    if isinstance(adapted, CannotRead):
        return None
    of_file = estimate_delivery(adapted.deliveries[0], model)
    return Estimate(estimate_request(adapted, model), of_file.rule) if of_file else None
