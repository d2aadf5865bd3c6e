"""How do calls beside chat come in and go out? One door for each operation of the table, all made alike."""
