"""Kinds of alerts, and the messages that webhooks send to chats."""
