"""What can be done with artifacts from a shell? The commands of this app."""
