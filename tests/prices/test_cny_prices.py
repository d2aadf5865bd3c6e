"""The price table in yuan is well-formed and matches the prices that the vendors publish."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from fnmatch import fnmatchcase
from importlib.resources import files
from itertools import combinations, pairwise
from typing import Any
from urllib.parse import urlsplit

import pytest

from capabilities.core.providers.hosts.china import CHINA

DOCUMENT: Mapping[str, Any] = json.loads(
    files("routing_admin.limits.prices").joinpath("cny_prices.json").read_text("utf-8")
)
ROWS: tuple[Mapping[str, Any], ...] = tuple(DOCUMENT["rows"])
ROW = {"hosts", "models", "tiers", "from", "checkedOn", "source"}
AMOUNTS = {"input", "cacheRead", "cacheWrite", "output", "thinkingOutput"}

BAILIAN = "https://help.aliyun.com/zh/model-studio/model-pricing"
DOC_TURBO = "https://help.aliyun.com/zh/model-studio/qwen-doc-turbo"
MINIMAX = "https://platform.minimaxi.com/docs/guides/pricing-paygo.md"
BIGMODEL = "https://docs.bigmodel.cn/cn/guide/start/pricing.md"

PUBLISHED: tuple[tuple[str, str, str, int, dict[str, str]], ...] = (
    # The fields are: page, host, model, input tokens of the request, and prices per million tokens.
    (BAILIAN, "dashscope", "qwen3.8-max", 900_000, {"input": "12", "output": "36"}),
    (BAILIAN, "dashscope", "qwen3.8-flash", 900_000, {"input": "0.8", "output": "2.7"}),
    (BAILIAN, "dashscope", "qwen3-max", 32_000, {"input": "2.5", "output": "10"}),
    (BAILIAN, "dashscope", "qwen3-max", 32_001, {"input": "4", "output": "16"}),
    (BAILIAN, "dashscope", "qwen3-max", 128_001, {"input": "7", "output": "28"}),
    (BAILIAN, "dashscope", "qwen3-max-2025-09-23", 1, {"input": "6", "output": "24"}),
    (BAILIAN, "dashscope", "qwen3.7-plus", 256_000, {"input": "2", "output": "8"}),
    (BAILIAN, "dashscope", "qwen3.7-plus", 256_001, {"input": "6", "output": "24"}),
    (BAILIAN, "dashscope", "qwen-plus", 128_000, {"input": "0.8", "output": "2", "thinkingOutput": "8"}),
    (BAILIAN, "dashscope", "qwen-plus", 200_000, {"input": "2.4", "output": "20", "thinkingOutput": "24"}),
    (BAILIAN, "dashscope", "qwen-plus", 256_001, {"input": "4.8", "output": "48", "thinkingOutput": "64"}),
    (BAILIAN, "dashscope", "qwen3.7-flash", 100_000, {"input": "0.6", "output": "2.4"}),
    (BAILIAN, "dashscope", "qwen-turbo", 1, {"input": "0.3", "output": "0.6", "thinkingOutput": "3"}),
    (BAILIAN, "dashscope", "qwen-long", 1, {"input": "0.5", "output": "2"}),
    (BAILIAN, "dashscope", "qwen3-vl-plus", 128_001, {"input": "3", "output": "30"}),
    (BAILIAN, "dashscope", "qwen3-coder-plus", 256_000, {"input": "10", "output": "40"}),
    (BAILIAN, "dashscope", "qwen3-coder-plus", 256_001, {"input": "20", "output": "200"}),
    (BAILIAN, "dashscope", "qwen3-8b", 1, {"input": "0.5", "output": "2", "thinkingOutput": "5"}),
    (BAILIAN, "dashscope", "qwen-mt-flash", 1, {"input": "0.7", "output": "1.95"}),
    (
        DOC_TURBO,
        "dashscope",
        "qwen-doc-turbo",
        1,
        {"input": "0.6", "output": "1", "cacheRead": "0.12", "cacheWrite": "0.75"},
    ),
    (
        MINIMAX,
        "minimax",
        "MiniMax-M2.7",
        1,
        {"input": "2.1", "output": "8.4", "cacheRead": "0.42", "cacheWrite": "2.625"},
    ),
    (
        MINIMAX,
        "minimax",
        "MiniMax-M2.5-highspeed",
        1,
        {"input": "4.2", "output": "16.8", "cacheRead": "0.21", "cacheWrite": "2.625"},
    ),
    (MINIMAX, "minimax", "M2-her", 1, {"input": "2.1", "output": "8.4"}),
    (BIGMODEL, "zhipu", "GLM-5.3", 900_000, {"input": "8", "output": "28", "cacheRead": "2"}),
    (BIGMODEL, "zhipu", "GLM-5.3-Flash", 1, {"input": "0.8", "output": "2.8", "cacheRead": "0.23"}),
)
"""Each model's current price, copied from the vendor's page and not from the project's price table."""


def find_rows(host: str, model: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the price table whose model names or patterns match the model at the host."""
    for row in ROWS:
        if host in row["hosts"] and any(fnmatchcase(model, pattern) for pattern in row["models"]):
            yield row


def test_yuan_price_table_states_currency_and_unit() -> None:
    assert DOCUMENT["currency"] == "CNY"
    assert DOCUMENT["unit"] == "1000000 tokens"
    assert DOCUMENT.keys() == {"currency", "unit", "gatheredOn", "rows"}
    assert all(row.keys() == ROW for row in ROWS)


def test_every_price_row_has_known_hosts_and_lower_case_models() -> None:
    known = {host.name for host in CHINA}
    for row in ROWS:
        assert row["hosts"], row
        assert set(row["hosts"]) <= known, row
        assert row["models"] == sorted({model.lower() for model in row["models"]}), row


def test_price_rows_are_sorted_by_host_and_model() -> None:
    order = [(row["hosts"], row["models"], row["from"] or "") for row in ROWS]
    assert order == sorted(order)


def test_every_tier_has_a_price_and_the_last_is_unlimited() -> None:
    for row in ROWS:
        *bounds, last = [tier["upTo"] for tier in row["tiers"]]
        assert last is None, row
        assert all(lower < higher for lower, higher in pairwise([0, *bounds])), row
        for tier in row["tiers"]:
            assert {"upTo", "input", "output"} <= tier.keys() <= {"upTo"} | AMOUNTS, row
            amounts = [Decimal(tier[name]) for name in tier.keys() & AMOUNTS]
            assert all(isinstance(tier[name], str) for name in tier.keys() & AMOUNTS), row
            assert all(amount.is_finite() and amount >= 0 for amount in amounts), row


def test_every_price_row_has_a_source_and_dates() -> None:
    gathered = date.fromisoformat(DOCUMENT["gatheredOn"])
    for row in ROWS:
        source = urlsplit(row["source"])
        assert source.scheme == "https", row
        assert source.netloc, row
        assert date.fromisoformat(row["checkedOn"]) <= gathered, row
        assert row["from"] is None or date.fromisoformat(row["from"]) <= gathered, row


def test_no_model_has_two_prices_on_one_day() -> None:
    for first, second in combinations(ROWS, 2):
        if first["from"] == second["from"] and set(first["hosts"]) & set(second["hosts"]):
            names = [(model, pattern) for model in first["models"] for pattern in second["models"]]
            assert not any(fnmatchcase(a, b) or fnmatchcase(b, a) for a, b in names), (first, second)


@pytest.mark.parametrize(("page", "host", "model", "tokens", "published"), PUBLISHED)
def test_yuan_price_equals_the_published_price(
    page: str, host: str, model: str, tokens: int, published: Mapping[str, str]
) -> None:
    newest = max(find_rows(host, model.lower()), key=lambda row: row["from"] or "")
    tier = next(tier for tier in newest["tiers"] if tier["upTo"] is None or tokens <= tier["upTo"])
    assert {name: Decimal(tier[name]) for name in published} == {
        name: Decimal(amount) for name, amount in published.items()
    }, page
