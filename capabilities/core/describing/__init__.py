"""How does one model describe a file for another? What it is asked, what it may be asked about, how it is quoted."""
