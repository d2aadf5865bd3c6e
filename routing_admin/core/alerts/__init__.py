"""Which problems must an operator hear about, and how is a chat message made?"""
