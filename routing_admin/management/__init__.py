"""What can be done from a shell? The commands of the project."""
