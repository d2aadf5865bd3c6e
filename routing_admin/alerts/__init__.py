"""Who watches what is wrong, and tells the operator's chat of it?"""
