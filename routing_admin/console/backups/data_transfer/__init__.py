"""Move an installation to another database and another artifact store."""
