"""What does Anthropic say and answer? Messages."""
