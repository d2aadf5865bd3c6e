"""Where a task goes: configuration, fallback flow and languages in plain Python."""
