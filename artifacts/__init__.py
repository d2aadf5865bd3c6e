"""Stored files: type detection, text extraction, byte storage, and delivery to models."""
