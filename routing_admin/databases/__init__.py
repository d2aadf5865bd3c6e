"""Which rows live in which database, and how long does a statement wait for another's?"""
