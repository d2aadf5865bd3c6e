"""What do people type on the pages of this package? Checked field by field; nothing is written here."""
