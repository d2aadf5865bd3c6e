"""What do processes share besides rows? Through Redis or Valkey, if `REDIS_URL` names one; reconnects by itself."""
