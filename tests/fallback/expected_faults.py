"""The expected result of each fault, written by hand from docs/faults.md and not taken from the product's table.

Each row has these columns:

- `seed`, `resilient`, `strict`: what a route with that preset does (retry, next, raise).
- `tries`: how often a route with the preset `seed` and two retries calls the failing candidate.
- `1st`, `3rd`: the cooldown in seconds after the first and after the third failure in a row.
- `cools`: whether the cooldown applies to the model or to its whole provider.
- `status`, `code`: what the agent gets if the fault is raised. `own` is the provider's status, and `stream` for
  the content so far followed by an error event.
- `exhausted`: the status of a chain in which every candidate failed in this way, or `-` if the chain ends at the first.
- `mark`: whether an administrator is alerted.
"""

from __future__ import annotations

from dataclasses import dataclass

ROWS = """
fault                 seed  resilient strict tries 1st   3rd   cools    status code                      exhausted mark
dns_error             retry retry     retry  3     30    90    provider 502    upstream_unreachable      502       -
connect_refused       retry retry     retry  3     30    90    provider 502    upstream_unreachable      502       -
connect_timeout       retry retry     retry  3     -     30    provider 504    upstream_timeout          504       -
tls_error             retry retry     retry  3     -     30    provider 502    upstream_unreachable      502       -
tls_cert_error        next  next      next   1     30    90    provider 502    tls_verify                502       alert
reset_before_headers  retry retry     retry  3     -     30    model    502    upstream_unreachable      502       -
read_timeout          next  next      retry  1     -     30    model    504    upstream_timeout          504       -
deadline              raise raise     raise  1     -     -     -        504    deadline_exceeded         -         -
truncated_body        retry retry     retry  3     -     30    model    502    bad_upstream_response     502       -
slow_body             next  next      retry  1     -     30    model    504    upstream_timeout          504       -
too_large             next  next      next   1     30    90    model    502    response_too_large        502       -
redirect              next  next      next   1     30    90    provider 502    redirect_refused          502       alert
bad_http              retry retry     retry  3     -     30    model    502    bad_upstream_response     502       -
bad_content_type      next  next      retry  1     30    90    model    502    bad_upstream_response     502       -
bad_json              retry retry     retry  3     -     30    model    502    bad_upstream_response     502       -
bad_shape             next  next      retry  1     -     30    model    502    bad_upstream_response     502       -
empty_choices         retry retry     retry  3     -     30    model    502    empty_completion          502       -
empty_content         next  next      retry  1     -     30    model    502    empty_completion          502       -
generation_failed     next  next      next   1     -     -     -        502    bad_upstream_response     502       -
http_400              raise raise     raise  1     -     -     -        400    upstream_400              502       -
http_400_context      raise raise     raise  1     -     -     -        400    context_length_exceeded   502       -
http_400_content      raise raise     raise  1     -     -     -        400    content_filter            502       -
unsupported_parameter raise raise     raise  2     -     -     -        400    unsupported_parameter     502       -
capability_mismatch   next  next      next   2     -     -     -        502    capability_mismatch       502       -
http_401              raise next      raise  1     -     -     -        502    upstream_auth             502       alert
http_402              next  next      next   1     600   600   provider 502    upstream_payment_required 502       alert
http_403              raise next      raise  1     -     -     -        502    upstream_forbidden        502       alert
http_404              raise next      raise  1     -     -     -        404    upstream_404              502       alert
http_408              retry retry     retry  3     -     30    model    504    upstream_timeout          504       -
http_409              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_413              raise next      raise  1     -     -     -        413    upstream_413              502       -
http_415              raise raise     raise  1     -     -     -        415    upstream_415              502       -
http_422              raise next      raise  1     -     -     -        422    upstream_422              502       -
http_425              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_429              retry retry     retry  3     -     30    model    429    upstream_429              429       -
http_429_wait         next  next      retry  1     named named model    429    upstream_429              429       -
http_429_bad_header   retry retry     retry  3     60    60    model    429    upstream_429              429       -
http_429_quota        next  next      retry  1     600   600   provider 429    upstream_429              429       alert
http_4xx              raise raise     raise  1     -     -     -        own    upstream_<status>         502       -
http_500              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_501              next  next      retry  1     -     30    model    502    upstream_error            502       -
http_502              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_503              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_504              retry retry     retry  3     -     30    model    504    upstream_timeout          504       -
http_52x              retry retry     retry  3     30    90    model    502    upstream_error            502       -
http_529              next  next      retry  1     30    90    model    502    upstream_error            502       -
http_5xx              retry retry     retry  3     -     30    model    502    upstream_error            502       -
http_other            next  next      next   1     -     30    model    502    bad_upstream_response     502       -
ttft_timeout          next  next      retry  1     -     30    model    504    upstream_timeout          504       -
stream_empty          retry retry     retry  3     -     30    model    502    empty_completion          502       -
stream_stall          raise raise     raise  1     -     30    model    stream stream_stalled            -         -
stream_broken         raise raise     raise  1     -     30    model    stream stream_broken             -         -
stream_truncated      raise raise     raise  1     -     30    model    stream stream_truncated          -         -
origin_refused        next  next      next   1     -     -     -        502    origin_refused            502       alert
key_missing           next  next      next   1     -     -     -        502    upstream_auth             502       alert
fire_drill            next  next      next   1     -     -     -        503    fire_drill                502       -
"""

BYTES_DIFFER = frozenset(
    {
        *("ok", "http_400", "http_401", "http_403", "http_429", "http_500", "http_529", "wait", "gemini_retry"),
        *("gemini_bad_key", "quota", "context_length", "parameter", "policy", "capability", "error_in_200"),
        *("empty_choices", "empty_content", "other_object", "reasoning_only", "length", "filtered", "tool_call"),
        *("error_event_first", "error_event_mid", "stream_empty", "no_finish", "no_done", "bad_event", "bad_events"),
        *("reset_mid_body", "stall", "bytes", "held_open", "reset_after_finish"),
    }
)
"""Scenarios of the fault lab whose bytes differ by protocol. All others are the same in every protocol."""


@dataclass(frozen=True)
class ExpectedFault:
    """A row's values. Cooldowns are in seconds, or None if there is none."""

    fault: str
    seed: str
    resilient: str
    strict: str
    tries: int
    first_cooldown: float | None
    third_cooldown: float | None
    cools: str
    status: int
    code: str
    exhausted: int | None
    alert: bool

    @property
    def in_the_stream(self) -> bool:
        return self.code.startswith("stream_")


NAMED_WAIT = 90.0
"""The number of seconds in the Retry-After header, for faults that have one."""

REFUSED_STATUS = 418
"""An example of a 4xx status without its own row."""


def _seconds(cell: str) -> float | None:
    return {"-": None, "named": NAMED_WAIT}[cell] if cell in ("-", "named") else float(cell)


def _status(cell: str) -> int:
    return {"own": REFUSED_STATUS, "stream": 502}[cell] if cell in ("own", "stream") else int(cell)


def _expected_fault(cells: list[str]) -> ExpectedFault:
    fault, seed, resilient, strict, tries, first, third, cools, status, code, exhausted, alert = cells
    return ExpectedFault(
        *(fault, seed, resilient, strict, int(tries), _seconds(first), _seconds(third), cools, _status(status)),
        code.replace("<status>", str(REFUSED_STATUS)),
        None if exhausted == "-" else int(exhausted),
        alert == "alert",
    )


EXPECTED = {cells[0]: _expected_fault(cells) for cells in map(str.split, ROWS.strip().splitlines()[1:])}

KEY_COOLDOWNS = {
    "http_401": 600,
    "http_402": 600,
    "http_403": 600,
    "http_429_quota": 600,
    "http_429": 30,
    "http_429_wait": NAMED_WAIT,
    "http_429_bad_header": 60,
}
"""Maps each fault of a single key to the key's cooldown in seconds.

All other faults concern the provider or the request.
"""
