"""How much of its limits may an agent's call still use? Shares in memory, drawn from a ledger in rows."""
