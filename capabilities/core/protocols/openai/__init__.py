"""OpenAI's Chat Completions, as OpenAI and compatible hosts have it."""
