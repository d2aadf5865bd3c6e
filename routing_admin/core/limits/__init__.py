"""What may a caller use, and what does it cost?"""
