"""What can agents ask about artifacts? Their calls, and the shapes of bodies."""
