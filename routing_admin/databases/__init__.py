"""Which rows live in which database, how long does a statement wait for another's, and when does none answer?"""
