"""Which rows are in which database, how long does a statement wait, and when is a database away?"""
