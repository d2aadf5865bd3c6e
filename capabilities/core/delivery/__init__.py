"""File delivery: decide in which form a model receives each file, and produce that form."""
