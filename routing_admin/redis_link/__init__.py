"""What do processes share beside rows? By Redis or Valkey, where `REDIS_URL` names one, found again when it is back."""
