"""Values and rules about files in plain Python, without Django."""
