"""What do pages and API ask about providers, services and agents? Every read of rows for them."""
