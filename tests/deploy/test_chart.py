"""The Helm chart renders valid objects with few privileges. Its servers stop within the time that Kubernetes allows."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from routing_admin.environment import SETTINGS
from routing_admin.paths import program_version
from routing_admin.platform.server.health_checks import PROBE_SECONDS
from routing_admin.program import ENTRIES
from tests.gateway.serving import ROOT

CHART = ROOT / "deploy" / "helm" / "routing-admin"
RELEASE = ROOT / ".venv-release"
NEEDED = {
    "image": {"repository": "registry.example.com/routing-admin"},
    "publicUrl": "https://routing.example.com",
    "secret": "routing-admin",
    "s3": {"url": "s3://artifacts/routing"},
}
EVERYTHING = NEEDED | {
    "image": {
        "repository": "registry.example.com/routing-admin",
        "digest": f"sha256:{'a' * 64}",
        "pullSecrets": [{"name": "registry"}],
    },
    "postgresql": {"secret": "database-app", "key": "uri"},
    "redis": {"secret": "valkey", "key": "url"},
    "s3": {"url": "s3://artifacts", "secret": "bucket"},
    "settings": {"ROUTING_ADMIN_TIME_ZONE": "Asia/Shanghai", "ROUTING_ADMIN_MAX_CALLS": 64},
    "drainSeconds": 120,
    "bootstrap": {"demo": True, "backupClaim": "backups"},
    "ingress": {"enabled": True, "className": "nginx", "annotations": {"a": "b"}, "tlsSecret": "tls"},
    "metrics": {"enabled": True},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "podAnnotations": {"a": "b"},
}


DOCUMENTED = yaml.safe_load(
    re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "kubernetes.md").read_text(), re.DOTALL)[0]
)
REJECTED: Mapping[str, Mapping[str, Any]] = {
    "name the Secret": {"secret": ""},
    "the address that people and agents use": {"publicUrl": ""},
    "the bucket for artifacts": {"s3": {"url": ""}},
    "replica": {"replica": 3},
}
"""Maps complaints of the chart to the changed values that cause them."""
VALUES: Mapping[str, Mapping[str, Any]] = {
    "defaults": NEEDED,
    "everything": EVERYTHING,
    "documented": DOCUMENTED,
    **{complaint: NEEDED | change for complaint, change in REJECTED.items()},
}


@pytest.fixture(scope="module")
def answers() -> Mapping[str, Any]:
    """Render the chart with all `VALUES` in one process, because importing Helm's library takes seconds."""
    if not [*RELEASE.glob("lib/python*/site-packages/helm_python")]:
        missing = "Helm's library is missing: make release (on x86_64)"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    command = [str(RELEASE / "bin" / "python"), str(ROOT / "tests" / "deploy" / "render_chart.py"), str(CHART)]
    result = subprocess.run(command, input=json.dumps(VALUES), capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


@pytest.fixture(params=["defaults", "everything"])
def rendered(request: pytest.FixtureRequest, answers: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    answer = answers[request.param]
    assert answer["problems"] == []
    return VALUES[request.param], {manifest["kind"]: manifest for manifest in answer["objects"]}


def list_pods(objects: Mapping[str, Any]) -> list[dict[str, Any]]:
    jobs = [objects["Deployment"]["spec"], objects["Job"]["spec"], objects["CronJob"]["spec"]["jobTemplate"]["spec"]]
    return [job["template"]["spec"] for job in jobs]


def test_chart_version_equals_the_program_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == chart["version"] == program_version()


def test_every_pod_runs_a_program_command_without_privileges(rendered) -> None:
    """Containers write only to volumes.

    Service links are disabled: otherwise, Kubernetes would set variables named after its Services, which could override
    the program's own.
    """
    _values, objects = rendered
    for pod in list_pods(objects):
        (container,) = pod["containers"]
        assert container["args"][0] in ENTRIES
        assert "command" not in container
        assert pod["securityContext"]["runAsNonRoot"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert not pod["automountServiceAccountToken"]
        assert pod["enableServiceLinks"] is False
        assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/data", "/tmp"}
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}


def test_chart_variables_are_known_settings_and_secrets_are_references(rendered) -> None:
    known = {setting.name for setting in SETTINGS}
    secret = {setting.name for setting in SETTINGS if setting.secret}
    values, objects = rendered
    for pod in list_pods(objects):
        variables = {variable["name"]: variable for variable in pod["containers"][0]["env"]}
        assert variables.keys() <= known
        assert all("valueFrom" in variables[name] for name in variables.keys() & secret)
        assert {"DATABASE_URL", "REDIS_URL"} <= variables.keys()
        assert variables["ROUTING_ADMIN_PUBLIC_URL"]["value"] == values["publicUrl"]
        assert variables["ROUTING_ADMIN_DATA_DIR"]["value"].startswith("/data/")


def test_chart_servers_stop_gracefully_and_one_at_a_time(rendered) -> None:
    """The server waits before it drains, because load balancers need time to notice that it is stopping."""
    values, objects = rendered
    deployment = objects["Deployment"]["spec"]
    pod = deployment["template"]["spec"]
    (container,) = pod["containers"]
    wait = int(container["lifecycle"]["preStop"]["exec"]["command"][-1])
    assert pod["terminationGracePeriodSeconds"] > values.get("drainSeconds", 30) + wait + 10
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert objects["PodDisruptionBudget"]["spec"]["maxUnavailable"] == 1
    for kind, selector in (
        ("PodDisruptionBudget", objects["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]),
        ("Service", objects["Service"]["spec"]["selector"]),
    ):
        assert selector.items() <= deployment["template"]["metadata"]["labels"].items(), kind
        assert not selector.items() <= objects["Job"]["spec"]["template"]["metadata"]["labels"].items(), kind


def test_chart_probe_timeouts_exceed_the_servers_own_check_timeout(rendered) -> None:
    _values, objects = rendered
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    paths = {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    for probe, path in paths.items():
        assert container[probe]["httpGet"] == {"path": path, "port": "http"}
        assert container[probe]["timeoutSeconds"] > PROBE_SECONDS


def test_ingress_metrics_and_backup_are_rendered_if_enabled(rendered) -> None:
    values, objects = rendered
    _servers, job, _prune = list_pods(objects)
    ports = {port["name"] for port in objects["Deployment"]["spec"]["template"]["spec"]["containers"][0]["ports"]}
    if "ingress" not in values:
        assert "Ingress" not in objects
        assert ports == {"http"}
        assert job["containers"][0]["args"] == ["bootstrap", "--no-demo", "--no-backup"]
        return
    assert objects["Ingress"]["spec"]["rules"][0]["host"] == "routing.example.com"
    assert ports == {"http", "metrics"}
    assert job["containers"][0]["args"] == ["bootstrap"]
    assert job["volumes"][0]["persistentVolumeClaim"] == {"claimName": "backups"}
    assert job["containers"][0]["image"].endswith(f"@sha256:{'a' * 64}")


def test_documented_chart_values_are_accepted(answers: Mapping[str, Any]) -> None:
    answer = answers["documented"]
    assert answer["problems"] == []
    (ingress,) = [manifest for manifest in answer["objects"] if manifest["kind"] == "Ingress"]
    assert ingress["spec"]["tls"] == [{"hosts": ["routing.example.com"], "secretName": "routing-tls"}]


@pytest.mark.parametrize("complaint", REJECTED)
def test_missing_or_unknown_chart_value_is_reported(answers: Mapping[str, Any], complaint: str) -> None:
    assert complaint in answers[complaint]["error"]
