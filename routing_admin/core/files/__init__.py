"""What do `llm-routing.json` and `llmservices.json` say? Read, checked, made one configuration, and written back."""
