"""Read, check, merge and write `llm-routing.json` and `llmservices.json`."""
