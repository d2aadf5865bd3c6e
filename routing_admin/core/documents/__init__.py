"""Read and write JSON text. Every problem has a path and a line, and unknown fields are preserved."""
