"""Project package: settings, routing of tasks to models, the gateway, the console and the request log."""
