"""How is the installation doing? The first page: routes, providers, what failed, what to do."""
