"""What is a file, and how would each model receive it? Values and rules in plain Python."""
