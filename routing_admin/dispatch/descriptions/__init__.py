"""What did models say about files? Stored, so that each is asked once and conversations keep their prefix."""
