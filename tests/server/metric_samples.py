"""Read the metric samples that this process shows at `/metrics`."""

from __future__ import annotations

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families


def read_samples() -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the values of all samples, by metric name and labels."""
    text = Client(REMOTE_ADDR="127.0.0.1").get("/metrics").content.decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
