"""OpenAI's Responses API, used statelessly: each call contains the entire conversation."""
