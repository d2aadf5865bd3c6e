"""Project package: settings, task routing, the gateway, the console and the request log."""
