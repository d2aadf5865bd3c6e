"""The alert rules and dashboards in deploy/monitoring/: they match `/metrics`, and each alert fires when it should."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client

from capabilities.core.services.agent_limits import Meter
from routing_admin.core.alerts.kinds import KINDS, AlertKind, Severity
from routing_admin.core.fallback.chain import CANCELLED
from routing_admin.core.fallback.endings import RequestEnding
from routing_admin.platform.server.hooks import server_hooks
from routing_admin.platform.server.metrics import SECONDS, list_process_families, read_sources
from routing_admin.platform.server.worker_board import board
from routing_admin.request_log.counting import KINDS as TOKENS
from tests.deploy.test_units import skip_or_fail
from tests.engines.programs import find_program
from tests.gateway.serving import ROOT
from tests.house.test_documents import anchors_in

MONITORING, HERE = ROOT / "deploy/monitoring", Path(__file__).parent
ALERTS = MONITORING / "alerts.yaml"
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]
]
DASHBOARDS: Mapping[str, Any] = {path.name: json.loads(path.read_text()) for path in MONITORING.glob("*.json")}
RULE_TESTS = sorted(HERE.glob("alert_rules*_test.yaml"))

SCRAPED = {"up": {"job", "instance"}}
"""The labels that Prometheus adds to every scraped series."""
METRIC = re.compile(r"\b((?:routing_admin|gen_ai|process)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"')
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
VALUES: Mapping[str, set[str]] = {
    "ending": {*RequestEnding},
    "le": {str(bound) for bound in SECONDS},
    "state": {"working", "unable", "disabled"},
    "error_type": {"", CANCELLED},
    "outcome": {"ok"},
    "job": {"routing_admin"},
    "worker": {""},
    "limit": {*Meter},
}
"""The values that a query's selector may contain, by label. A dashboard's variables are always allowed.

The values of the label `kind` depend on the metric.
"""
VALUES_OF_KIND = {"routing_admin_alerts_open": {*AlertKind}, "routing_admin_tokens_total": {*TOKENS}}


def list_panels(dashboard: Any) -> list[Any]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for name, dashboard in DASHBOARDS.items():
        for panel in list_panels(dashboard):
            yield from ((f"{name}: {panel['title']}", target["expr"]) for target in panel["targets"])
        yield from ((name, annotation["expr"]) for annotation in dashboard["annotations"]["list"])
        yield from ((name, variable["definition"]) for variable in dashboard["templating"]["list"][1:])


def metrics_in(query: str) -> list[tuple[str, str]]:
    return METRIC.findall(GROUPED.sub("", query))


def read_labels() -> dict[str, set[str]]:
    """Map the name of every series that `/metrics` can contain to its labels, even if it has no value yet."""
    counted, pids = board().collect()
    known_labels = {name: set(labels) for name, labels in SCRAPED.items()}
    for family in (*counted, *read_sources(server_hooks().families), *list_process_families(pids)):
        labels = {*family.labels, "job", "instance"}
        name = f"{family.name.removesuffix('_total')}_total" if family.only_grows else family.name
        if family.buckets:
            known_labels |= {f"{name}_bucket": labels | {"le"}, f"{name}_count": labels, f"{name}_sum": labels}
        else:
            known_labels[name] = known_labels.get(name, set()) | labels
    return known_labels


@pytest.mark.django_db(databases=["default", "logs"])
def test_every_metric_label_and_value_in_rules_and_dashboards_is_exposed(demo: None) -> None:
    known = read_labels()
    text = Client(REMOTE_ADDR="127.0.0.1").get("/metrics").content.decode()
    printed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    for name, query in expressions():
        used_metrics = metrics_in(query)
        assert used_metrics, name
        for metric, selector in used_metrics:
            assert metric in SCRAPED or {metric, re.sub(r"_(bucket|count|sum)$", "", metric)} & printed, (name, metric)
            for label, _, value in MATCHER.findall(selector):
                assert label in known[metric], (name, metric, label)
                allowed = VALUES_OF_KIND.get(metric, set()) if label == "kind" else VALUES.get(label, set())
                if not value.startswith("$"):
                    missing = [
                        pattern
                        for pattern in value.split("|")
                        if not any(re.fullmatch(pattern, known_value) for known_value in allowed)
                    ]
                    assert missing == [], (name, metric, label)
        labels = set.union(*(known[metric] for metric, _ in used_metrics))
        used = {label.strip() for group in GROUPED.findall(query) for label in group.split(",")}
        assert used <= labels, (name, used - labels)


@pytest.mark.django_db(databases=["default", "logs"])
def test_legends_and_descriptions_use_only_labels_of_their_query(demo: None) -> None:
    """A label that the query's aggregation drops would be empty in the legend."""
    known = read_labels()
    named = [
        (target["expr"], re.findall(r"{{(\w+)}}", target["legendFormat"]))
        for dashboard in DASHBOARDS.values()
        for panel in list_panels(dashboard)
        for target in panel["targets"]
    ] + [(rule["expr"], re.findall(r"\$labels\.(\w+)", rule["annotations"]["description"])) for rule in RULES]
    for query, labels in named:
        outer_query = re.sub(r"topk by \([^)]*\)", "", query)
        groups = [{label.strip() for label in group.split(",")} for group in GROUPED.findall(outer_query)]
        metrics = [known[metric] for metric, _ in metrics_in(query)]
        assert set(labels) <= set.intersection(*(groups or metrics)), query


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_alert_rule_has_a_severity_annotations_and_an_existing_page(rule: dict[str, Any]) -> None:
    """An alert rule for one of the program's alert kinds has that kind's severity and page."""
    assert rule["labels"]["severity"] in {*Severity}
    assert set(rule["annotations"]) == {"summary", "description", "page"}
    name, _, anchor = rule["annotations"]["page"].partition("#")
    assert not anchor or anchor in anchors_in((ROOT / name).read_text())
    assert (ROOT / name).is_file()
    if kind := rule["labels"].get("kind"):
        row = KINDS[AlertKind(kind)]
        assert (rule["labels"]["severity"], rule["annotations"]["page"]) == (row.severity, row.page)


def test_every_alert_kind_has_a_rule_or_is_listed_as_reported_by_the_program() -> None:
    """A comment at the top of the rules lists the alert kinds that only the program itself reports."""
    head = ALERTS.read_text().split("groups:")[0]
    reported_by_program = set(re.findall(r"\w+", head)) & {*AlertKind}
    ruled = {rule["labels"]["kind"] for rule in RULES if "kind" in rule["labels"]}
    assert (reported_by_program | ruled, reported_by_program & ruled) == ({*AlertKind}, set())


def test_scrape_example_loads_the_rules_under_their_job_name() -> None:
    example = yaml.safe_load((MONITORING / "prometheus.yaml").read_text())
    assert example["rule_files"] == [ALERTS.name]
    assert {config["job_name"] for config in example["scrape_configs"]} == VALUES["job"]


@pytest.mark.parametrize("name", DASHBOARDS)
def test_dashboard_can_be_imported(name: str) -> None:
    """A dashboard's data source is a variable, not the id of one Grafana installation's data source."""
    dashboard = DASHBOARDS[name]
    assert {"title", "description", "tags", "uid", "schemaVersion", "time"} <= set(dashboard)
    assert "id" not in dashboard
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    variables = {variable["name"]: variable for variable in dashboard["templating"]["list"]}
    assert (next(iter(variables)), variables["datasource"]["type"]) == ("datasource", "datasource")
    assert set(re.findall(r"\$\{?([a-z]+)", json.dumps(dashboard))) <= set(variables)
    taken: set[tuple[int, int]] = set()
    titles = [panel["title"] for panel in dashboard["panels"]]
    assert len(set(titles)) == len(titles)
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert (panel["title"] != "", max(x for x, _ in cells) < 24, cells & taken) == (True, True, set()), panel[
            "title"
        ]
        taken |= cells
    for panel in list_panels(dashboard):
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references)


def test_dashboards_have_unique_uids_and_the_expected_variables() -> None:
    assert len({dashboard["uid"] for dashboard in DASHBOARDS.values()}) == len(DASHBOARDS) == 2
    names = {variable["name"] for dashboard in DASHBOARDS.values() for variable in dashboard["templating"]["list"]}
    assert names == {"datasource", "instance", "agent", "route", "provider"}


@cache
def promtool() -> str | None:
    return find_program("promtool")


def run_promtool(*arguments: str | Path) -> None:
    program = promtool()
    if program is None:
        skip_or_fail("promtool is missing (Debian: apt-get install prometheus).")
    run = subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_prometheus_accepts_the_rules() -> None:
    run_promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)


def test_prometheus_can_parse_the_queries_of_the_dashboards(tmp_path: Path) -> None:
    queries = [query for _, query in expressions() if not query.startswith("label_values")]
    queries = [re.sub(r"\$__\w+", "5m", query) for query in queries]
    rules = [{"record": f"query:{number}", "expr": query} for number, query in enumerate(queries)]
    path = tmp_path / "queries.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    run_promtool("check", "rules", path)


def test_each_alert_rule_fires_for_failing_series_only() -> None:
    run_promtool("test", "rules", *RULE_TESTS)


def test_each_alert_rule_has_a_test_with_firing_and_quiet_series() -> None:
    tests = [test for path in RULE_TESTS for test in yaml.safe_load(path.read_text())["tests"]]
    assert sorted(test["name"] for test in tests) == sorted(rule["alert"] for rule in RULES)
    for test in tests:
        series = " ".join(row["series"] for row in test["input_series"])
        assert '"ill' in series, test["name"]
        assert '"well' in series, test["name"]
        checks = test["promql_expr_test"]
        assert all(f'alertname="{test["name"]}"' in check["expr"] for check in checks), test["name"]
        assert [bool(check.get("exp_samples")) for check in checks] == [False, True], test["name"]
