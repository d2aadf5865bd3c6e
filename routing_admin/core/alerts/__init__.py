"""Kinds of alerts, and the messages that are sent to chat services by webhook."""
