"""How does one request get its answer? It is planned, prepared per candidate, and sent; simulations do the same."""
