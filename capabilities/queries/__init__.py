"""What do pages and API ask about providers, services and agents? All their reads of rows."""
