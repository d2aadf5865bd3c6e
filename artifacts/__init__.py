"""Stored files: type detection, text extraction, storage, and delivery to models."""
