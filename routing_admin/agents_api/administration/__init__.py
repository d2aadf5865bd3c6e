"""What does an administrator's script ask and change? The same as the pages, through the same actions."""
