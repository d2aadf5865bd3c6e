"""What does OpenAI's interface do beside chat? One table of operations, whose requests and answers pass unchanged."""
