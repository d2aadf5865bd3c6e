"""What do `llm-routing.json` and `llmservices.json` say? Reading, checking, combining and writing them."""
