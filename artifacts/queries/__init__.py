"""What do pages, API and commands ask about artifacts? All their reads of rows."""
