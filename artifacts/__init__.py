"""What a file is, and how each model would receive it."""
