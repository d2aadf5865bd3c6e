"""Which alerts are open, and do they reach the chat?"""
