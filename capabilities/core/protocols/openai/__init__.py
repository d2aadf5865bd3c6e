"""OpenAI's Chat Completions API, of OpenAI and compatible hosts."""
