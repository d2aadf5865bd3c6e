"""What can an administrator's script read and change? The same as the pages, through the same actions."""
