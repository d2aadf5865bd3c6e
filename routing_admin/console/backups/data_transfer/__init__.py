"""How is an installation carried to another database and another store of artifacts, and back?"""
