"""What can this model read? Files with a random word, and the judgment of what a model says it found."""
