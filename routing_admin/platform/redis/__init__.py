"""State that processes share through Redis or Valkey if `REDIS_URL` is set; lost connections are restored."""
