"""How are problems detected, and how do they reach the operator's chat?"""
