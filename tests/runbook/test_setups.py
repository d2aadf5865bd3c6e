"""The setup pages: scrapers, proxies that terminate TLS, and an orchestrator's probes."""

from __future__ import annotations

from tests.engines.redis import free_port
from tests.runbook.installation import Installation, until


def test_both_ports_say_the_same_of_the_whole_server(own: Installation) -> None:
    """Both ports report each call once."""
    port = free_port()
    own.environment["ROUTING_ADMIN_METRICS_PORT"] = str(port)
    own.start()
    assert own.call().status == 200
    until(lambda: own.number("routing_admin_requests_total") == 1)
    places = {"http://127.0.0.1:9100": f"http://127.0.0.1:{port}"}
    first, second = own.play("metrics-lie", "compare", **places).splitlines()
    assert first == second
    assert "routing_admin_requests_total" in own.play("metrics-lie", "over", **places)


def test_a_proxy_that_passes_the_scheme_on_gets_the_page(own: Installation) -> None:
    """Without a trusted proxy, the server ignores the forwarded scheme and redirects."""
    own.environment["ROUTING_ADMIN_PUBLIC_URL"] = "https://models.example"
    words = {"$PUBLIC_HOST": "models.example"}
    own.start()
    assert own.play("tls", "ask", **words).strip() == "301"
    own.stop()
    own.environment["ROUTING_ADMIN_TRUSTED_PROXIES"] = "1"
    own.start()
    assert own.play("tls", "ask", **words).strip() == "200"


def test_probes_tell_a_process_that_lives_from_what_it_depends_on(own: Installation) -> None:
    own.start()
    assert own.play("probes-end-servers", "ask").splitlines()[:2] == ["healthz 200", "readyz 200"]
    assert "routing_admin_info" in own.play("probes-end-servers", "over")
    own.play("tls", "over")
