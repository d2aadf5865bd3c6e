"""What do pages, API and commands ask about artifacts? Every read of rows for them."""
