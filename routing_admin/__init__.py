"""Where a task goes: the project package, task routes, data plane, configuration and history."""
