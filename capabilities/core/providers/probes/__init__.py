"""Probes that find out what a model can read: they send files that contain a random word, and judge the answers."""
