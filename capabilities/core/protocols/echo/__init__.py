"""What does the embedded provider say and answer? A description of what it received."""
