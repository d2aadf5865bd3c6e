"""Stored files: detection, extraction, storage, and the form in which each model receives them."""
