"""How does a file reach a model? One decision, the values it reads, and how it is carried out."""
