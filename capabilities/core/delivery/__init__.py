"""How a file reaches a model: the decision, the values it reads, and the code that carries it out."""
