"""What does Anthropic send and answer? Messages."""
