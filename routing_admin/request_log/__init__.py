"""What happened to each request? Written after the answer, searched, explained in a sentence, counted as health."""
