"""What do people see? One folder per family of pages; each view is four moves: find, form, action, render."""
