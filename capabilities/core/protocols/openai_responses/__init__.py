"""OpenAI's Responses API, used without state: each call contains the whole conversation."""
