"""What do OpenAI and compatible hosts send and answer? Chat Completions."""
