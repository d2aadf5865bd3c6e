"""Probes that find out what a model reads: they send files with a random word and judge the model's answers."""
