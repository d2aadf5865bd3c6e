"""OpenAI's operations beside chat, whose requests and answers pass unchanged."""
