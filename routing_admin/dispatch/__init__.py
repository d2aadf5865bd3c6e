"""How does one request get its answer? Planned, prepared for each candidate, sent; a simulation takes the same way."""
