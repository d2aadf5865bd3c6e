"""How did the seeds' programs call all this? Their names over our rooms; nothing of ours imports them."""
