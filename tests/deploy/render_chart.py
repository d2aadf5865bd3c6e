"""`python tests/deploy/render_chart.py CHART < VALUES`: render, lint and validate a chart with Helm's own library.

It needs the packages that `make release` installs. `VALUES` is a JSON object that maps names to values for the chart.
For each name, the JSON output contains the objects, the findings of `helm lint` and of Kubernetes' schemas, and the
error if the chart rejects the values.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import helm_python
import kubernetes_validate
import yaml

OLDEST, NEWEST = "1.27", "1.35"
RECOMMENDED = 1
"""The severity that `helm lint` gives to a mere recommendation, such as adding an icon."""


def list_problems(manifest: Any) -> list[str]:
    problems = []
    for version in (OLDEST, NEWEST):
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            problems.append(f"{version} {manifest['kind']}: {error}")
    return problems


def render(chart: str, values: Any) -> dict[str, Any]:
    try:
        linted = helm_python.lint(chart, values)
        with helm_python.Chart.load(chart) as loaded:
            loaded.validate_schema(values)
            files = loaded.render(values, name="routing-admin", namespace="gateway")
    except helm_python.HelmError as error:
        return {"error": str(error)}
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    objects = [manifest for text in texts for manifest in yaml.safe_load_all(text) if manifest]
    complaints = [message["error"] for message in linted["messages"] if message["severity"] > RECOMMENDED]
    return {
        "objects": objects,
        "problems": [*complaints, *(problem for manifest in objects for problem in list_problems(manifest))],
    }


if __name__ == "__main__":
    print(json.dumps({name: render(sys.argv[1], values) for name, values in json.load(sys.stdin).items()}))
