"""Has the first call with a new key arrived, and if not, why?"""
