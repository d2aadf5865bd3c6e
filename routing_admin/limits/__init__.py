"""How much of its limits may an agent's call still use? Shares of them in memory, drawn from a ledger of rows."""
