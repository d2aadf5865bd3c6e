"""What can you do in a shell? The project's commands."""
