"""How is JSON read and written as text, so that every problem has its path and line and no unknown field is lost?"""
