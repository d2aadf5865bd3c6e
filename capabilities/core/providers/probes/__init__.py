"""Probes that determine what a model can read, by sending files with a random word and judging the answers."""
