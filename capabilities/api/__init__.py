"""What can agents ask about services and agents? Their calls, what every call does first, and the shapes of bodies."""
