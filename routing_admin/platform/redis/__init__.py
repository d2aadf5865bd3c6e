"""State that processes share through Redis or Valkey if `REDIS_URL` names one; reconnects automatically."""
