"""How does a chat request come in and its answer go out? `POST /v1/chat/completions`, whole and streamed."""
