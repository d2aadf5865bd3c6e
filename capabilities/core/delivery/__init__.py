"""How a file reaches a model: the decision, the values it is based on, and the code that carries it out."""
