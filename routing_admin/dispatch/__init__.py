"""How does one request get its answer? It is planned, prepared for each candidate, and sent; simulations do the same."""
