"""What lives as long as the process? Limits on bodies, request ids, draining, health checks, logs, throttling."""
