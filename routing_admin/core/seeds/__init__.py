"""What did the original programs (the seeds) call all this? Their names for our parts; no code of ours imports them."""
