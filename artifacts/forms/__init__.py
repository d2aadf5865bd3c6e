"""What do people enter about a file? The action that follows checks it."""
