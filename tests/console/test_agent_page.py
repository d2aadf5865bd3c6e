"""An agent's public page, opened with a link that an administrator creates and can revoke."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from capabilities.access import make_key
from capabilities.actors import SYSTEM
from capabilities.core.services.agents import LINK_KIND, find_public_id, find_secret
from capabilities.models import Agent, AgentLink
from routing_admin.configuration import snapshot
from routing_admin.configuration.agents.actions import delete_agent
from routing_admin.console.providers.stored_keys import list_outdated_agents
from routing_admin.models import AttemptLog, AuditEvent, Installation, RequestLog, SignInAttempt
from routing_admin.platform.databases.router import LOGS
from tests.cast import PASSWORD, create_key, person
from tests.console.page import Page
from tests.console.visits import count_queries

pytestmark = [pytest.mark.django_db(databases=["default", "logs"])]
LINK = re.compile(r"/agent-page/rap_[0-9a-f]{8}_[\w-]{43}_[0-9a-f]{8}/")


@pytest.fixture(autouse=True)
def old_agents(demo: None) -> None:
    """Install the demo with agents that are older than every call in a test."""
    Agent.objects.update(created_at=timezone.now() - timedelta(days=30))
    RequestLog.objects.all().delete()


def make_link(client: Client, agent: str = "text-agent", **fields: str) -> str:
    """Create a link on the agent's admin page and return its URL, which only that response shows."""
    answer = client.post(f"/links/make/{agent}/", {"link-name": "Mei", "link-days": "90", **fields})
    link = LINK.search(Page(answer).text)
    assert link is not None
    return link[0]


def call_page(address: str, pk: str = "r1") -> str:
    """Return a call's URL, which is below the agent's page."""
    return address.replace("/agent-page/", f"/agent-page/calls/{pk}/")


def log_request(pk: str, agent: str = "text-agent", ago: float = 0, **columns: Any) -> RequestLog:
    started_at = timezone.now() - timedelta(minutes=ago)
    chain = [{"name": "gpt", "code": 503, "tone": "bad"}, {"name": "echo", "code": 200, "tone": "ok"}]
    values = {"surface": "v1", "outcome": "ok", "status": 200, "task_type": "design", "chain": chain, "model": "echo"}
    row = RequestLog.objects.create(id=pk, agent=agent, started_at=started_at, **values | columns)
    tries = [{"startedMs": 0, "durationMs": 9, "outcome": "http_503", "status": 503, "key": "the spare key"}]
    error = "The gateway http://10.0.0.7:8443/internal is down"
    failure = {"outcome": "http_503", "status": 503, "error": error, "tries": tries}
    AttemptLog.objects.create(request=row, position=0, provider="openai", model="gpt", at=started_at, **failure)
    files = [
        {"filename": "plan.png", "kind": "image", "shown": "described", "artifactId": "a1", "sentence": "too large"}
    ]
    values = {"outcome": "ok", "status": 200, "deliveries": files, "cost_nanos": 3_000_000, "currency": "USD"}
    columns = {**values, "prompt_tokens": 54, "completion_tokens": 92}
    AttemptLog.objects.create(request=row, position=1, provider="echo", model="echo-text", at=started_at, **columns)
    return row


def record_bodies(on: bool) -> None:
    Installation.objects.update(record_bodies=on)
    snapshot.refresh()


def test_link_is_shown_once_and_stored_as_a_digest(admin: Client) -> None:
    address = make_link(admin)
    row = AgentLink.objects.get()
    secret = find_secret(address.split("/")[-2])
    assert len(secret) == 43
    assert timedelta(days=89) < (row.expires_at or timezone.now()) - timezone.now() < timedelta(days=91)
    assert secret not in admin.get("/agents/text-agent/").content.decode() + str(list(AgentLink.objects.values()))


def test_creating_and_revoking_a_link_is_audited_without_the_secret(admin: Client) -> None:
    secret = find_secret(make_link(admin).split("/")[-2])
    row = AgentLink.objects.get()
    admin.post(f"/links/{row.public_id}/revoke/text-agent/")
    events = list(AuditEvent.objects.filter(action__startswith="link.").order_by("id").values())
    assert [event["action"] for event in events] == ["link.make", "link.revoke"]
    assert secret not in str(events)
    assert Page(admin.get("/history/audit/")).shows("Link to an agent's page issued")


@pytest.mark.parametrize(("days", "lifetime_days"), [("7", 7), ("30", 30), ("0", None)])
def test_link_expires_after_the_chosen_number_of_days_or_never(
    admin: Client, days: str, lifetime_days: int | None
) -> None:
    make_link(admin, **{"link-days": days})
    expires_at = AgentLink.objects.get().expires_at
    assert (expires_at is None) == (lifetime_days is None)
    assert expires_at is None or abs(expires_at - timezone.now() - timedelta(days=lifetime_days or 0)) < timedelta(
        minutes=1
    )
    assert admin.post("/links/make/text-agent/", {"link-name": "Mei", "link-days": "1000"}).status_code == 422
    assert admin.post("/links/make/text-agent/", {"link-days": "7"}).status_code == 422
    assert AgentLink.objects.count() == 1


@pytest.mark.parametrize("is_editor", [False, True])
def test_only_administrators_can_create_and_see_links(admin: Client, is_editor: bool) -> None:
    make_link(admin)
    client = Client()
    client.force_login(person("walker", is_editor=is_editor))
    assert client.post("/links/make/text-agent/", {"link-name": "x", "link-days": "7"}).status_code == 403
    page = Page(client.get("/agents/text-agent/"))
    assert not page.heading("Links to its page")
    assert not page.control("share")


def test_link_opens_the_agent_page_without_an_account(admin: Client, settings: Any) -> None:
    settings.PUBLIC_URL = "https://ra.example"
    key = create_key("text-agent")
    Agent.objects.filter(agent_id="text-agent").update(limits={"tokensPerDay": 1000})
    log_request("r1")
    answer = Client().get(make_link(admin))
    page = Page(answer)
    assert page.shows("Writes; its model reads text only.")
    assert page.region("Recent calls").row("design").shows("503")
    assert page.region("Keys").code(f"{key[:11]}…")
    assert key not in answer.content.decode()
    assert page.region("Limits").shows("0 / 1,000")
    assert page.region("curl").shows("curl https://ra.example/v1/chat/completions")
    assert page.region("OpenAI JS").shows('new OpenAI({ baseURL: "https://ra.example/v1"')
    assert page.region("Anthropic SDK").shows('Anthropic(base_url="https://ra.example"')
    assert "task:planning" in page.region("What it can call").rows
    assert "vision-agent" in page.region("Other agents, and what each reads").rows
    assert page.region("Reads").shows("forwards to multimodal-agent")


def test_agent_page_shows_no_call_yet_before_the_first_call(admin: Client) -> None:
    address = make_link(admin)
    assert Page(Client().get(address)).heading("No call yet")
    log_request("r1")
    assert not Page(Client().get(address)).heading("No call yet")


def test_call_page_shows_the_content_sent_to_each_model_but_no_internals(admin: Client) -> None:
    log_request("r1", body={"messages": "meet me at noon"})
    address = make_link(admin)
    answer = Client().get(call_page(address))
    received = Page(answer).region("What each model received")
    assert received.shows("plan.png")
    assert received.shows("too large")
    assert Page(answer).region("Attempts").shows("54 in, 92 out")
    # A 503 is the provider's fault. Its message stays hidden, because it may name internal hosts.
    for hidden in ("the spare key", "10.0.0.7", "USD", "meet me at noon", "/artifacts/"):
        assert hidden not in answer.content.decode()


def test_client_errors_are_shown_with_the_provider_message(admin: Client) -> None:
    """The caller has to correct a parameter that the model rejects, so the provider's message is quoted."""
    row = log_request("r1", outcome="http_400", status=400)
    row.attempts.filter(position=0).update(outcome="http_400", status=400, error="Unknown parameter: top_q")
    address = make_link(admin)
    assert Page(Client().get(call_page(address))).shows("Unknown parameter: top_q")


def test_costs_are_shown_only_if_the_agent_has_a_budget(admin: Client) -> None:
    log_request("r1", cost_nanos=3_000_000, currency="USD")
    address = make_link(admin)
    addresses = (address, call_page(address))
    assert not any(Page(Client().get(url)).shows("0.003 USD") for url in addresses)
    Agent.objects.filter(agent_id="text-agent").update(limits={"moneyPerDay": "5", "currency": "USD"})
    assert all(Page(Client().get(url)).shows("0.003 USD") for url in addresses)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("ticked", [False, True])
def test_recorded_messages_are_shown_only_if_the_setting_and_the_link_option_are_on(
    admin: Client, recorded: bool, ticked: bool
) -> None:
    log_request("r1", body={"messages": "meet me at noon"})
    address = make_link(admin, **({"link-with_bodies": "on"} if ticked else {}))
    record_bodies(recorded)
    page = Page(Client().get(call_page(address)))
    assert bool(page.shows("meet me at noon")) is (recorded and ticked)
    readers = list(AuditEvent.objects.filter(action="request.read").values_list("actor_kind", flat=True))
    assert readers == (["link"] if recorded and ticked else [])


def test_calls_of_other_agents_and_of_deleted_namesakes_return_404(admin: Client) -> None:
    log_request("other", "vision-agent")
    log_request("before", ago=60 * 24 * 31)
    address = make_link(admin)
    assert Page(Client().get(address)).heading("No call yet")
    answers = []
    for name in ("other", "before", "never"):
        answer = Client().get(call_page(address, name))
        answers.append((answer.status_code, answer.content.decode().replace(name, "")))
    assert len(set(answers)) == 1
    assert answers[0][0] == 404


def list_call_ids(page: Page) -> list[str]:
    return [url.split("/")[3] for url in page.region("Recent calls").link_urls if url.startswith("/agent-page/calls/")]


def test_calls_are_listed_newest_first_with_twenty_per_page(admin: Client) -> None:
    for number in range(45):
        log_request(f"r{number:02}", ago=number)
    address, ids_by_page = make_link(admin), []
    query = ""
    for _ in range(3):
        page = Page(Client().get(address + query))
        ids_by_page.append(list_call_ids(page))
        older = page.link("Older")
        query = (older.attributes["href"] or "") if older else ""
    assert [len(ids) for ids in ids_by_page] == [20, 20, 5]
    assert [pk for page in ids_by_page for pk in page] == [f"r{number:02}" for number in range(45)]
    assert list_call_ids(Page(Client().get(f"{address}?before=nonsense"))) == ids_by_page[0]


def test_expired_and_unknown_links_get_the_same_response(admin: Client) -> None:
    """Unknown, mistyped, revoked and expired links, and links to expired or deleted agents, are indistinguishable."""
    links = [make_link(admin, "vision-agent") for _ in range(4)]
    revoked, expired = AgentLink.objects.order_by("id")[:2]
    admin.post(f"/links/{revoked.public_id}/revoke/vision-agent/")
    AgentLink.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    unknown = f"/agent-page/{make_key(LINK_KIND)[0]}/"
    mistyped = links[3][:-12] + ("A" if links[3][-12] != "A" else "B") + links[3][-11:]
    addresses = [links[0], links[1], unknown, mistyped, "/agent-page/nonsense/"]
    answers = {(answer.status_code, answer.content.decode()) for answer in map(Client().get, addresses)}
    Agent.objects.filter(agent_id="vision-agent").update(expires_at=timezone.now())
    assert Client().get(links[2]).status_code == 404
    delete_agent(SYSTEM, Agent.objects.get(agent_id="vision-agent"))
    assert not AgentLink.objects.exists()
    answer = Client().get(links[2])
    answers.add((answer.status_code, answer.content.decode()))
    assert len(answers) == 1
    status, page = answers.pop()
    assert status == 404
    assert Page(page).heading("Invalid link")
    assert "vision-agent" not in page


def test_guessing_the_secret_of_a_link_blocks_only_this_link(admin: Client) -> None:
    link, other_link = make_link(admin), make_link(admin)
    public = find_public_id(link.split("/")[-2])
    guesses = [re.sub(r"rap_\w{8}", f"rap_{public}", f"/agent-page/{make_key(LINK_KIND)[0]}/") for _ in range(6)]
    assert [Client().get(guessed_link).status_code for guessed_link in guesses] == [404] * 5 + [429]
    answer = Client().get(link)
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 15 * 60
    assert Page(answer).shows("Too many invalid links were tried from here.")
    assert Client().get(other_link).status_code == 200
    assert SignInAttempt.objects.count() == 5


def guess_link(**headers: str) -> int:
    return Client(**headers).get(f"/agent-page/{make_key(LINK_KIND)[0]}/").status_code


def test_guessing_links_blocks_an_ip_address_for_links_but_not_for_sign_in(admin_account: Any) -> None:
    assert [guess_link() for _ in range(51)] == [404] * 50 + [429]
    form = {"username": admin_account.get_username(), "password": PASSWORD}
    assert Client().post("/login/", form).status_code == 302


def test_cross_site_requests_do_not_count_as_guesses() -> None:
    """Otherwise, a site could request guessed links and lock its visitors out."""
    assert {guess_link(HTTP_SEC_FETCH_SITE="cross-site") for _ in range(60)} == {404}
    assert not SignInAttempt.objects.exists()


def test_valid_link_opens_from_another_site(admin: Client) -> None:
    """Links are often clicked on a chat service's web page."""
    assert Client(HTTP_SEC_FETCH_SITE="cross-site").get(make_link(admin)).status_code == 200


def test_link_response_sets_no_cookie_or_referrer_and_is_neither_cached_nor_indexed(admin: Client) -> None:
    """The response to an invalid link has the same headers."""
    address = make_link(admin)
    for url in (address, call_page(address, "x"), "/agent-page/nonsense/"):
        answer = Client().get(url)
        assert answer["Referrer-Policy"] == "no-referrer"
        assert "noindex" in answer["X-Robots-Tag"]
        assert "no-store" in answer["Cache-Control"]
        assert not answer.cookies
        assert "csrf" not in answer.content.decode()


def test_public_pages_link_only_to_each_other_and_reject_posts(admin: Client) -> None:
    log_request("r1")
    address = make_link(admin)
    for url in (address, call_page(address)):
        page = Page(Client().get(url))
        attributes = [pair for control in page.controls for pair in control.attributes.items()]
        sent = [value or "" for name, value in attributes if name == "action" or name.startswith("hx-")]
        targets = [target for target in [*page.link_urls, *sent] if target]
        assert page.link_urls
        assert [target for target in targets if not target.startswith(("/agent-page/", "#", "?"))] == []
        assert ("method", "post") not in attributes
        assert Client().post(url).status_code == 405


def test_query_parameters_choose_language_and_theme(admin: Client) -> None:
    address, client = make_link(admin), Client()
    answer = client.get(f"{address}?language=zh-hans")
    assert (answer.status_code, answer["Location"]) == (302, address)
    client.get(f"{address}?theme=dark")
    client.get(f"{address}?language=nonsense&theme=nonsense")
    page = Page(client.get(address))
    assert page.heading("最近的调用")
    assert [control.attributes["data-theme"] for control in page.controls if control.tag == "html"] == ["dark"]
    assert {"django_language", "theme"} == set(client.cookies)


def test_visit_is_recorded_and_signs_the_link_with_the_newest_secret(admin: Client, settings: Any) -> None:
    address = make_link(admin)
    assert AgentLink.objects.get().last_seen_at is None
    settings.SIGNING_SECRETS = ["a newer secret", *settings.SIGNING_SECRETS]
    assert list_outdated_agents() == ["text-agent"]
    assert Client().get(address).status_code == 200
    assert AgentLink.objects.get().last_seen_at is not None
    assert list_outdated_agents() == []
    settings.SIGNING_SECRETS = settings.SIGNING_SECRETS[:1]
    assert Client().get(address).status_code == 200


def test_revoke_command_accepts_a_full_link_url(admin: Client, capsys: Any) -> None:
    address = make_link(admin)
    call_command("revoke_key", f"http://127.0.0.1:8000{address}")
    assert "The link for Mei to the page of text-agent" in capsys.readouterr().err
    assert Client().get(address).status_code == 404


def test_agent_page_query_count_does_not_grow_with_the_data(admin: Client) -> None:
    log_request("r0")
    address = make_link(admin)
    call = call_page(address, "r0")
    query_counts = [
        (count_queries(Client(), url), count_queries(Client(), url, using="logs")) for url in (address, call)
    ]
    for number in range(60):
        log_request(f"more{number}", ago=number + 1)
    for _ in range(6):
        create_key("text-agent")
        make_link(admin)
    assert [
        (count_queries(Client(), url), count_queries(Client(), url, using="logs")) for url in (address, call)
    ] == query_counts
    assert query_counts == [(3, 1), (2, 2)]


@pytest.mark.sqlite
def test_call_list_query_uses_an_index(admin: Client) -> None:
    address = make_link(admin)
    with CaptureQueriesContext(connections[LOGS]) as caught:
        Client().get(address)
    (list_query,) = [query["sql"] for query in caught if "ORDER BY" in query["sql"]]
    with connections[LOGS].cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {list_query}")
        plan = str(cursor.fetchall())
    assert "USING INDEX request_agent (agent=? AND started_at>?)" in plan
