"""Rank search results by how well their names match, then by kind, with a maximum number for each kind."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

MAX_OF_KIND = 6
MAX_RESULTS = 24
"""Maximum number of results in total; `MAX_OF_KIND` is the maximum for each kind."""


class FoundKind(StrEnum):
    """Kinds of search results. Equally good matches are listed in this order."""

    PAGE = "page"
    ACT = "act"
    ROUTE = "route"
    PROVIDER = "provider"
    SERVICE = "service"
    AGENT = "agent"
    ALIAS = "alias"
    KEY = "key"
    PERSON = "person"
    REQUEST = "request"
    ARTIFACT = "artifact"
    SETTING = "setting"
    DOCUMENT = "document"


KIND_WORDS: Mapping[FoundKind, tuple[str, ...]] = {
    FoundKind.PAGE: (),
    FoundKind.ACT: (),
    FoundKind.ROUTE: ("route", "task", "任务路由", "任务类型"),
    FoundKind.PROVIDER: ("provider", "channel", "vendor", "提供商", "渠道", "供应商"),
    FoundKind.SERVICE: ("service", "model", "模型服务"),
    FoundKind.AGENT: ("agent", "智能体"),
    FoundKind.ALIAS: ("alias", "别名"),
    FoundKind.KEY: ("key", "密钥"),
    FoundKind.PERSON: ("user", "person", "用户"),
    FoundKind.REQUEST: ("request", "请求"),
    FoundKind.ARTIFACT: ("artifact", "file", "工件", "文件"),
    FoundKind.SETTING: ("setting", "设置"),
    FoundKind.DOCUMENT: ("documentation", "docs", "runbook", "文档"),
}
"""Words that match all results of a kind in addition to their names: `channel deepseek` finds a provider."""


class MatchQuality(IntEnum):
    """How well a typed word matches, from best to worst."""

    EXACT = 0
    BEGINNING = 1
    WORD = 2
    INSIDE = 3
    KIND = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Findable:
    kind: FoundKind
    label: str
    url: str
    names: tuple[str, ...]
    detail: str = ""
    icon: str = ""


@dataclass(frozen=True, slots=True)
class Ranking:
    """The results to show, best first, and the number of matches for each kind."""

    shown: tuple[Findable, ...]
    matches: Mapping[FoundKind, int]

    @property
    def cut(self) -> dict[FoundKind, tuple[int, int]]:
        """For each kind with matches that are not shown: how many results are shown, and how many match."""
        shown = Counter(item.kind for item in self.shown)
        return {kind: (shown[kind], count) for kind, count in self.matches.items() if shown[kind] < count}


def rank(typed: str, items: Iterable[Findable]) -> Ranking:
    """Return the results that match all typed words, best first; an empty query has no results."""
    fits = [(fit, item) for item in items if (fit := find_match(typed, item)) is not None]
    order = list(FoundKind)
    fits.sort(key=lambda pair: (pair[0], order.index(pair[1].kind)))
    counts: Counter[FoundKind] = Counter()
    chosen = []
    for _fit, item in fits:
        counts[item.kind] += 1
        if counts[item.kind] <= MAX_OF_KIND:
            chosen.append(item)
    return Ranking(tuple(chosen[:MAX_RESULTS]), counts)


MAX_TYPED = 200
"""Maximum length of a query, in characters."""


def find_match(typed: str, item: Findable) -> MatchQuality | None:
    """Return how well a result matches the whole query or, failing that, the query's worst-matching word.

    Return None if one of the words does not match at all.
    """
    query = " ".join(typed[:MAX_TYPED].casefold().split())
    names = [name.casefold() for name in item.names if name]
    if not query:
        return None
    if query in names:
        return MatchQuality.EXACT
    if any(name.startswith(query) for name in names):
        return MatchQuality.BEGINNING
    fits = [_match_word(word, names, KIND_WORDS[item.kind]) for word in query.split()]
    found = [fit for fit in fits if fit is not None]
    return max(found) if len(found) == len(fits) else None


def without_kind_words(typed: str, kind: FoundKind) -> str:
    """Return the query without words that name a kind, to search a list that contains only this kind."""
    names = KIND_WORDS[kind]
    return " ".join(word for word in typed.split() if not any(name.startswith(word.casefold()) for name in names))


def _match_word(word: str, names: Sequence[str], kind_words: Sequence[str]) -> MatchQuality | None:
    # A word starts where no letter or digit precedes it, so `flash` is a word in `gemini-3-flash`.
    if any(re.search(rf"(?<![^\W_]){re.escape(word)}", name) for name in names):
        return MatchQuality.WORD
    if any(word in name for name in names):
        return MatchQuality.INSIDE
    return MatchQuality.KIND if any(name.startswith(word) for name in kind_words) else None
