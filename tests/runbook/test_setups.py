"""The runbook's pages about setup problems: metrics scrapers, proxies that terminate TLS, and orchestrators' probes."""

from __future__ import annotations

from tests.processes import wait_until
from tests.runbook.installation import Installation


def test_main_and_metrics_port_report_the_same_metrics(served: Installation) -> None:
    """The metrics at both ports count each call once."""
    assert served.call("task:chain").status == 200
    wait_until(lambda: served.number("routing_admin_requests_total", route="chain") == 1)
    replacements = {"http://127.0.0.1:9100": f"http://127.0.0.1:{served.environment['ROUTING_ADMIN_METRICS_PORT']}"}
    lines = served.play("metrics-lie", "compare", **replacements).splitlines()
    assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]
    assert "routing_admin_requests_total" in served.play("metrics-lie", "over", **replacements)


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


def test_probes_distinguish_liveness_from_dependencies(served: Installation) -> None:
    assert served.play("probes-end-servers", "ask").splitlines()[:2] == ["healthz 200", "readyz 200"]
    assert "routing_admin_info" in served.play("probes-end-servers", "over")
    served.play("tls", "over")
