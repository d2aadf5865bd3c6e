"""State that processes share through Redis or Valkey if `REDIS_URL` is set; connections are restored automatically."""
