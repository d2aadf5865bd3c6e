"""What does OpenAI's Responses API send and answer? Everything in one call, nothing stored between calls."""
