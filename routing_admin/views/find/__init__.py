"""What has this name? Find: from a few typed words to a page, an object or an action."""
