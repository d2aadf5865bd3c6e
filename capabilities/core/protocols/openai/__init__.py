"""What do OpenAI and everybody like it say and answer? Chat Completions."""
