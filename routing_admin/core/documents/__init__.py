"""Read and write JSON text, with a path and line for every problem and without losing unknown fields."""
