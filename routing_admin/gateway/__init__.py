"""The data plane under `/v1`: chat, models, files and more, for programs that use models."""
