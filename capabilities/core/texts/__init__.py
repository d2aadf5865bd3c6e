"""What does a model read in place of a file? Descriptions, parsing them back, excerpts and phrases."""
