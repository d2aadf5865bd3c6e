"""The data plane under `/v1`: chat, models, files and other APIs for programs that call models."""
