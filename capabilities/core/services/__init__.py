"""Which model services and agents are there, and what can each read and write?"""
