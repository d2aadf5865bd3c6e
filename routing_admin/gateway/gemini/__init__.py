"""Gemini's API under `/v1beta`."""
