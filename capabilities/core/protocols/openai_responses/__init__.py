"""OpenAI's Responses API, used without state: each call holds the whole conversation."""
