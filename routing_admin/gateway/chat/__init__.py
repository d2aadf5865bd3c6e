"""OpenAI's chat API, `POST /v1/chat/completions`, with complete and streamed answers."""
