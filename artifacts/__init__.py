"""Stored files: their detection, text extraction, storage, and delivery to models."""
