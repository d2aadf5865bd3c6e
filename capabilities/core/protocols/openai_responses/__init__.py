"""What does OpenAI's Responses say and answer? Everything in one call, nothing kept from call to call."""
