"""What a file is and how each model would receive it: values and rules in plain Python."""
