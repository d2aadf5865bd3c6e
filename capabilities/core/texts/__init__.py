"""What does a model read in place of a file? Descriptions, their way back to fields, excerpts and words."""
