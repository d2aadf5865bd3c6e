"""The runbook's pages about setup problems: metrics scrapers, proxies that terminate TLS, and orchestrators' probes."""

from __future__ import annotations

from tests.processes import free_port, wait_until
from tests.runbook.installation import Installation


def test_main_and_metrics_port_report_the_same_metrics(installation: Installation) -> None:
    """The metrics at both ports count each call once."""
    port = free_port()
    installation.environment["ROUTING_ADMIN_METRICS_PORT"] = str(port)
    installation.start()
    assert installation.call().status == 200
    wait_until(lambda: installation.number("routing_admin_requests_total") == 1)
    replacements = {"http://127.0.0.1:9100": f"http://127.0.0.1:{port}"}
    first, second = installation.play("metrics-lie", "compare", **replacements).splitlines()
    assert first == second
    assert "routing_admin_requests_total" in installation.play("metrics-lie", "over", **replacements)


def test_request_through_a_trusted_https_proxy_is_not_redirected(installation: Installation) -> None:
    """Unless the proxy is trusted, the server ignores the forwarded scheme and redirects to HTTPS."""
    installation.environment["ROUTING_ADMIN_PUBLIC_URL"] = "https://models.example"
    replacements = {"$PUBLIC_HOST": "models.example"}
    installation.start()
    assert installation.play("tls", "ask", **replacements).strip() == "301"
    installation.stop()
    installation.environment["ROUTING_ADMIN_TRUSTED_PROXIES"] = "1"
    installation.start()
    assert installation.play("tls", "ask", **replacements).strip() == "200"


def test_probes_distinguish_liveness_from_dependencies(installation: Installation) -> None:
    installation.start()
    assert installation.play("probes-end-servers", "ask").splitlines()[:2] == ["healthz 200", "readyz 200"]
    assert "routing_admin_info" in installation.play("probes-end-servers", "over")
    installation.play("tls", "over")
