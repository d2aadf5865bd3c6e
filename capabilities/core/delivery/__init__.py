"""Delivery of files to models: the decision, its inputs, and the code that carries it out."""
