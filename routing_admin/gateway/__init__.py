"""How do programs reach models? The data plane: OpenAI's chat, models and files calls under `/v1` (CONTRACT §6)."""
