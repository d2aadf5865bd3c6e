"""Write the request log after each answer, search it, and sum up usage and the health of providers."""
