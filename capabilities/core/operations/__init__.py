"""OpenAI's operations other than chat, whose requests and responses are passed on unchanged."""
