"""Model answers that a database column or an encoding cannot hold: negative or huge token counts, lone surrogates."""

from __future__ import annotations

import json

from tests.lab.recordings import Recording, openai_answer
from tests.lab.scenarios import JSON, ScriptedExchange, scenario

ABSURD = openai_answer(
    {"content": "Counted."},
    [{"content": "Counted."}],
    usage={"prompt_tokens": -1_000_000, "completion_tokens": 2**70, "total_tokens": "NaN"},
)
HALVES = openai_answer({"content": "So \ud83d"}, [{"content": "So \ud83d"}, {"content": "\ude00 \ud83d"}])


@scenario("absurd_counts", "counts what cannot be", needs=("openai",))
async def absurd_counts(exchange: ScriptedExchange) -> None:
    await _play(exchange, ABSURD)


@scenario("half_emojis", "half an emoji, joined by the next piece or alone", needs=("openai",))
async def half_emojis(exchange: ScriptedExchange) -> None:
    await _play(exchange, HALVES)


async def _play(exchange: ScriptedExchange, recording: Recording) -> None:
    """Send the recorded answer, with surrogates as JSON escapes."""
    if exchange.request.stream:
        await exchange.stream(
            [*(b"data: %b\n\n" % json.dumps(event).encode() for event in recording.events), b"data: [DONE]\n\n"]
        )
    else:
        await exchange.connection.reply(200, json.dumps(recording.whole).encode(), JSON)
