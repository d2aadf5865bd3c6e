"""What people type into the pages of this package, checked field by field; nothing is written here."""
