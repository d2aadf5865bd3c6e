"""OpenAI's Responses API, used without server-side state: each call contains the entire conversation."""
