"""What can you do with artifacts in a shell? This app's commands."""
