"""How is a chat request read and answered? `POST /v1/chat/completions`, whole and streamed."""
