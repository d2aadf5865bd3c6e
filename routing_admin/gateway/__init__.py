"""How do programs reach models? The data plane: chat, models, files and more under `/v1`."""
