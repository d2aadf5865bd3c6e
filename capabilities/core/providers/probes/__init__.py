"""Probes of what a model reads: files with a random word, and the judgement of the model's answer."""
