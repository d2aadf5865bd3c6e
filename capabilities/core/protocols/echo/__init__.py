"""What does the embedded provider send and answer? A description of what it received."""
