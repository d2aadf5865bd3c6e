"""What the search page Find can find: pages, actions, configuration entries in memory, and some stored rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, override

from artifacts.library.queries import find_artifacts_beginning
from capabilities.core.permissions import PagePart, Right, UserRole, may_have, right_on_page
from capabilities.core.providers.presets import preset_for_endpoint
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.base.context import NAVIGATION
from routing_admin.console.docs.queries import list_titles
from routing_admin.console.find.queries import find_keys, find_people, find_requests
from routing_admin.core.ranking import MAX_OF_KIND, Findable, FoundKind, Ranking, without_kind_words
from routing_admin.request_log.search_words import quote

SHORTEST_ID = 3
"""Minimum number of characters for finding rows by the beginning of their id."""
# Only the public part of an agent's key is searched for, even if a whole key was pasted.
KEY_CHARACTERS = 8

ICONS = {
    FoundKind.ROUTE: "route",
    FoundKind.PROVIDER: "server",
    FoundKind.SERVICE: "grid",
    FoundKind.AGENT: "agent",
    FoundKind.ALIAS: "link",
    FoundKind.KEY: "key",
    FoundKind.PERSON: "user",
    FoundKind.REQUEST: "list",
    FoundKind.ARTIFACT: "doc",
    FoundKind.DOCUMENT: "book",
}


def list_findables(role: UserRole, typed: str, state: Snapshot) -> Iterator[Findable]:
    """Yield all entries and rows that may match the typed text, if the role may open their pages."""
    sources: dict[str, Any] = {
        "route": lambda: list_routes(state),
        "provider": lambda: list_providers(state),
        "service": lambda: list_services(state),
        "agent": lambda: (*list_agents(state), *search_keys(typed)),
        "user": lambda: search_people(typed),
        "request": lambda: search_requests(typed),
        "artifact": lambda: search_artifacts(typed),
        "documents": lambda: (build_findable(FoundKind.DOCUMENT, title, url, (title,)) for title, url in list_titles()),
    }
    for page, source in sources.items():
        if right_on_page(role, page) & Right.SEE:
            yield from source()


def build_findable(kind: FoundKind, label: str, url: str, names: Iterable[str], detail: str = "") -> Findable:
    return Findable(kind=kind, label=label, url=url, names=tuple(names), detail=detail, icon=ICONS[kind])


def list_routes(state: Snapshot) -> Iterator[Findable]:
    for route in state.configuration.routes:
        url, names = reverse("route", args=[route.task_type]), (route.task_type, f"task:{route.task_type}")
        yield build_findable(FoundKind.ROUTE, route.task_type, url, names)
    # An alias has no page of its own, so its link opens the list of aliases with a search for it.
    for alias in state.configuration.aliases:
        url = f"{reverse('alias')}?{urlencode({'q': alias.name})}"
        yield build_findable(FoundKind.ALIAS, alias.name, url, (alias.name,), f"→ {alias.target}")


def list_providers(state: Snapshot) -> Iterator[Findable]:
    for provider in state.configuration.providers:
        preset = preset_for_endpoint(provider.endpoint)
        # A provider is also found by its vendor's English or Chinese name.
        vendor_names = (preset.label_en, preset.label_zh) if preset else ()
        label = provider.display_name or provider.name
        names = (provider.name, label, *vendor_names, provider.endpoint)
        detail = "" if provider.name.casefold() == label.casefold() else provider.name
        yield build_findable(FoundKind.PROVIDER, label, reverse("provider", args=[provider.name]), names, detail)


def list_services(state: Snapshot) -> Iterator[Findable]:
    for service in state.configuration.services:
        names = (service.id, service.name, service.model, f"{service.provider}/{service.model}")
        detail = f"{service.provider}/{service.model}"
        yield build_findable(FoundKind.SERVICE, service.id, reverse("service", args=[service.id]), names, detail)


def list_agents(state: Snapshot) -> Iterator[Findable]:
    for agent in state.agents:
        yield build_findable(
            FoundKind.AGENT, agent.id, reverse("agent", args=[agent.id]), (agent.id, agent.name), agent.name
        )


def search_keys(typed: str) -> Iterator[Findable]:
    prefix = typed.removeprefix("ra_")[:KEY_CHARACTERS]
    if not _is_id_prefix(typed):
        return
    for key in find_keys(prefix):
        url, name = reverse("agent", args=[key.agent.agent_id]) + "#keys", f"ra_{key.public_id}"
        names = (typed, name, key.public_id)
        yield build_findable(
            FoundKind.KEY, f"{name}…", url, names, " · ".join(filter(None, (key.label, key.agent.agent_id)))
        )


def search_people(typed: str) -> Iterator[Findable]:
    for user in find_people(typed):
        name = user.get_username()
        yield build_findable(FoundKind.PERSON, name, reverse("user", args=[user.pk]), (name,))


def search_requests(typed: str) -> Iterator[Findable]:
    for row in find_requests(typed) if _is_id_prefix(typed) else ():
        detail = " · ".join(filter(None, (row.task_type, row.agent, row.outcome)))
        yield build_findable(FoundKind.REQUEST, row.pk, reverse("request", args=[row.pk]), (row.pk,), detail)


def search_artifacts(typed: str) -> Iterator[Findable]:
    for row in find_artifacts_beginning(typed):
        names = (row.filename, row.pk, row.ref)
        label = row.filename or row.ref
        yield build_findable(FoundKind.ARTIFACT, label, reverse("artifact", args=[row.pk]), names, row.ref)


LISTS: dict[FoundKind, tuple[str, Any]] = {
    FoundKind.ROUTE: ("routes", gettext_lazy("Task routes")),
    FoundKind.PROVIDER: ("providers", gettext_lazy("Providers")),
    FoundKind.SERVICE: ("services", gettext_lazy("Model services")),
    FoundKind.AGENT: ("agents", gettext_lazy("Agents")),
    FoundKind.ALIAS: ("alias", gettext_lazy("Aliases")),
    FoundKind.PERSON: ("users", gettext_lazy("Users")),
}
"""Maps each kind that has its own list page to this page's URL name and title, for a link to further matches."""
OPEN_ENDED = {FoundKind.KEY, FoundKind.PERSON, FoundKind.REQUEST, FoundKind.ARTIFACT}
"""Kinds that are searched in the database. Only a few rows are read, so there may be more matches than are counted."""


def write_total(ranking: Ranking, kinds: Iterable[FoundKind]) -> str:
    """Return the number of matches of these kinds, followed by `+` if there may be more."""
    matches = {kind: ranking.matches.get(kind, 0) for kind in kinds}
    has_more = any(matches.get(kind, 0) > MAX_OF_KIND for kind in OPEN_ENDED)
    return f"{sum(matches.values())}{'+' if has_more else ''}"


def link_full_lists(typed: str, ranking: Ranking) -> Iterator[Findable]:
    """Yield a link to the full list for each kind with more matches than are shown."""
    for kind, (shown, _count) in ranking.cut.items():
        if kind in LISTS:
            page, title = LISTS[kind]
            query = urlencode({"q": without_kind_words(typed, kind)})
            label = _("Show all in “%(page)s”") % {"page": title}
            numbers = _("%(shown)s of %(all)s") % {"shown": shown, "all": write_total(ranking, [kind])}
            yield Findable(kind=kind, label=label, url=f"{reverse(page)}?{query}", names=(), detail=numbers)


def list_searches(typed: str, state: Snapshot) -> tuple[Findable, ...]:
    """Return links to the request search, if the typed text is useful there, and to the artifact search."""
    results = []
    if query := requests_search(typed, state):
        label = _("Search requests for “%(words)s”") % {"words": query}
        results.append(
            Findable(kind=FoundKind.PAGE, label=label, url=f"{reverse('requests')}?{urlencode({'q': query})}", names=())
        )
    label = _("Search artifacts for “%(words)s”") % {"words": typed}
    results.append(
        Findable(kind=FoundKind.PAGE, label=label, url=f"{reverse('artifacts')}?{urlencode({'q': typed})}", names=())
    )
    return tuple(results)


def requests_search(typed: str, state: Snapshot) -> str:
    """Return a query for the request log: `key:name` if a known name was typed, else the typed text itself.

    Return an empty string if the text is not a known name, contains no search key, and cannot be the beginning of an
    id.
    """
    configuration = state.configuration
    names_by_key = {
        "task": [route.task_type for route in configuration.routes],
        "provider": [provider.name for provider in configuration.providers],
        "agent": [agent.id for agent in state.agents],
        "model": [service.model for service in configuration.services],
    }
    for key, names in names_by_key.items():
        for name in names:
            if name.casefold() == typed.casefold():
                return f"{key}:{quote(name)}"
    return typed if _is_id_prefix(typed) or ":" in typed else ""


def _is_id_prefix(typed: str) -> bool:
    return len(typed) >= SHORTEST_ID and not any(character.isspace() for character in typed)


# The rows below are pages, actions and sections of the settings page. The permission table decides by URL name who can
# find them. `also` contains further words, in any language, that find the row. An action's link opens the page for this
# action, so following it never changes anything.

ANY_RIGHT = Right.SEE | Right.TRY | Right.CHANGE


@dataclass(frozen=True, slots=True)
class FindRow:
    """A page, action or section of the settings page: its URL name and fragment, and the rights that it requires."""

    kind: FoundKind
    label: Any
    page: str
    icon: str
    also: tuple[str, ...] = ()
    place: str = ""
    needs: str = ""
    right: Right = ANY_RIGHT
    part: PagePart | None = None

    def is_open_to(self, role: UserRole) -> bool:
        has_part = self.part is None or may_have(role, self.part)
        return has_part and bool(right_on_page(role, self.needs or self.page) & self.right)

    def to_findable(self) -> Findable:
        label = str(self.label)
        return Findable(
            kind=self.kind,
            label=label,
            url=reverse(self.page) + self.place,
            names=(label, *row_names(self)),
            icon=self.icon,
        )


def action_row(label: Any, page: str, icon: str, *also: str, place: str = "", needs: str = "", **more: Any) -> FindRow:
    right = more.pop("right", Right.TRY | Right.CHANGE)
    return FindRow(FoundKind.ACT, label, page, icon, also, place, needs, right, **more)


def section_row(label: Any, place: str, *also: str, page: str = "settings") -> FindRow:
    return FindRow(FoundKind.SETTING, label, page, "gear", also, place)


ACTS = (
    action_row(gettext_lazy("Add task route"), "route_new", "plus", "new route", "create route", "新建任务路由"),
    action_row(gettext_lazy("Add provider"), "provider_new", "plus", "new provider", "添加渠道", "新建提供商"),
    action_row(gettext_lazy("Add model service"), "service_new", "plus", "new service", "add model", "新建模型服务"),
    action_row(gettext_lazy("Add agent"), "agent_new", "plus", "new agent", "create agent", "新建智能体"),
    action_row(
        gettext_lazy("Issue a key"),
        "agents",
        "key",
        *("new key", "agent key", "api key", "令牌", "新建密钥"),
        needs="key_issue",
    ),
    action_row(gettext_lazy("Upload a file"), "artifacts", "up", "new artifact", "上传工件", needs="artifact_upload"),
    action_row(
        gettext_lazy("Test all providers"),
        "providers",
        "refresh",
        *("test connection", "检查", "测试连接", "渠道"),
        place="#test-all",
        needs="providers_test",
    ),
    action_row(gettext_lazy("Fire drill"), "providers", "warn", "let a provider fail", "outage", needs="drill"),
    action_row(gettext_lazy("Simulate a request"), "simulate", "play", "try", "playground", "试用"),
    action_row(
        gettext_lazy("Export"),
        "config",
        "down",
        *("download configuration", "backup", "json", "下载配置"),
        place="#out",
        right=Right.SEE,
        part=PagePart.EXPORTS,
    ),
    action_row(gettext_lazy("Import"), "config", "up", "json", "导入配置", place="#in", needs="config_import"),
    action_row(
        gettext_lazy("Add budget"), "budgets", "chart", "set a budget", "limit", "quota", "额度", needs="budget_save"
    ),
    action_row(gettext_lazy("Refresh the catalogue"), "catalogue", "refresh", "models", place="#refresh"),
    action_row(
        gettext_lazy("Invite a user"),
        "users",
        "user",
        *("add user", "new user", "新建用户"),
        place="#invite",
        needs="user_invite",
    ),
    action_row(
        gettext_lazy("Issue a token"),
        "tokens",
        "key",
        "new token",
        "create a token",
        "script",
        place="#make",
        needs="token_new",
    ),
    action_row(
        gettext_lazy("Test the webhook"), "alerts", "send", "alert", "webhook", place="#webhook", needs="alert_test"
    ),
    action_row(gettext_lazy("Change password"), "password_change", "lock", "密码"),
    action_row(
        gettext_lazy("Show failed requests"),
        "requests",
        "stop",
        *("error", "errors", "错误", "失败"),
        place="?q=status%3Afailed",
        right=Right.SEE,
    ),
    action_row(
        gettext_lazy("Show requests that fell back"),
        "requests",
        "convert",
        *("fallback", "备选"),
        place="?q=status%3Afallback",
        right=Right.SEE,
    ),
)

PAGES = (
    FindRow(FoundKind.PAGE, gettext_lazy("Model services"), "services", "grid", ("models", "模型")),
    FindRow(FoundKind.PAGE, gettext_lazy("Catalogue of models"), "catalogue", "book", ("prices", "价格")),
    FindRow(FoundKind.PAGE, gettext_lazy("Budgets"), "budgets", "chart", ("limits", "额度")),
    FindRow(FoundKind.PAGE, gettext_lazy("Audit log"), "audit", "history", ("who did what",)),
    FindRow(FoundKind.PAGE, gettext_lazy("Alerts"), "alerts", "warn", ("webhook", "通知")),
    FindRow(FoundKind.PAGE, gettext_lazy("Users"), "users", "user", ("people", "roles", "角色")),
    FindRow(FoundKind.PAGE, gettext_lazy("Tokens for scripts"), "tokens", "key", ("admin token", "令牌")),
)
"""Pages that are missing from the navigation, or from the navigation of some roles."""

SECTIONS = (
    section_row(gettext_lazy("Languages of answers"), "#languages", "directive", "语言指令"),
    section_row(gettext_lazy("Files for models"), "#files", "content policy", "内容策略"),
    section_row(gettext_lazy("Exchange rates"), "#rates", "currency", "yuan", "人民币"),
    section_row(gettext_lazy("Retention"), "#retention", "retention", "prune", "保留期限", "清理"),
    section_row(gettext_lazy("Recording"), "#bodies", "record bodies", "privacy", "隐私", "正文"),
    section_row(gettext_lazy("Appearance"), "#look", "theme", "dark", "light", "language", "主题", "深色", "语言"),
    section_row(gettext_lazy("About this installation"), "#about", "version", "disk", "版本号"),
    section_row(gettext_lazy("From the environment"), "#environment", "ROUTING_ADMIN_", "variables", "环境变量"),
    section_row(gettext_lazy("Delivery"), "#webhook", "alert webhook", "告警", page="alerts"),
    section_row(gettext_lazy("Sessions"), "#sessions", "sign out", "devices", "设备", page="password_change"),
)

EXTRA_NAMES: dict[str, tuple[str, ...]] = {
    "dashboard": ("home", "overview", "首页", "总览"),
    "requests": ("log", "logs", "日志"),
    "usage": ("cost", "money", "statistics", "费用", "统计"),
    "routes": ("routing", "alias", "fallback", "别名", "备选链"),
    "simulate": ("try", "playground", "试用"),
    "matrix": ("models", "services", "catalogue", "模型"),
    "providers": ("channels", "vendors", "keys", "渠道", "供应商"),
    "agents": ("api keys", "clients", "令牌"),
    "artifacts": ("files", "uploads", "文件"),
    "config": ("export", "import", "json", "backup", "备份"),
    "history": ("undo", "revisions", "restore", "撤销", "版本"),
    "settings": ("preferences", "configuration", "配置"),
}
"""More words by which users can find the pages in the navigation."""


@cache
def row_names(row: FindRow) -> tuple[str, ...]:
    """Return a row's label in each of the pages' languages, followed by the row's additional search words."""
    names = []
    for code, _language in settings.LANGUAGES:
        with override(code):
            names.append(str(row.label))
    return (*dict.fromkeys(names), *row.also)


@cache
def list_navigation_pages() -> tuple[FindRow, ...]:
    entries = [entry for _label, places in NAVIGATION for entry in places if not entry.for_administrators]
    return tuple(
        FindRow(FoundKind.PAGE, entry.label, entry.name, entry.icon, EXTRA_NAMES.get(entry.name, ()), right=Right.SEE)
        for entry in entries
    )


def list_suggestions(role: UserRole, *, is_first: bool = False) -> Iterator[Findable]:
    """Return the pages and actions that the role may use. With `is_first`, return suggestions for an empty search."""
    other_pages = () if is_first else (*PAGES, *SECTIONS)
    acts = [row for row in ACTS if row.is_open_to(role)]
    pages = [row for row in (*list_navigation_pages(), *other_pages) if row.is_open_to(role)]
    return (row.to_findable() for row in (*pages, *(acts[:5] if is_first else acts)))
