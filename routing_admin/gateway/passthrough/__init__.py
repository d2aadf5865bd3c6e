"""How are calls beside chat read and answered? One endpoint per operation of the table, all made alike."""
