"""OpenAI's chat API, `POST /v1/chat/completions`, whole and streamed."""
