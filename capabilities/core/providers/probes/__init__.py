"""Probes that find out what a model can read. They send files that contain a random word, and judge the answers."""
