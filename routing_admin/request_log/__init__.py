"""What happened to each request? Written behind the answers, searched, told in a sentence, counted into health."""
