"""The pages' parts as template tags, usable from every app."""
