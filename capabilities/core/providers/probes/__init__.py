"""What can this model read? Files that hold a random word, and the judgement of what a model says it found there."""
