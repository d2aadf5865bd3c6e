"""What is called so? Find: from a few typed words to a page, a thing or an act."""
