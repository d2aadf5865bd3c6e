"""OpenAI's API operations other than chat, such as embeddings. Requests and responses are passed on unchanged."""
