"""What do people see of providers, services and agents? Each view finds, fills a form, acts, renders."""
