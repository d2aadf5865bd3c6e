"""What models were asked about what they read, and what they answered."""

from __future__ import annotations

from capabilities.models import ProbeTranscript, Service


def list_transcripts(row: Service) -> list[ProbeTranscript]:
    """The last probes of a service's model, by capability, the newest first; one query."""
    return list(ProbeTranscript.objects.filter(provider=row.provider.name, model=row.model))
