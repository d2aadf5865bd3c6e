"""What did models say of files? Kept, so that the same is asked once and a conversation stays as it was."""
