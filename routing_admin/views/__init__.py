"""The pages of the project package; each view is four moves: find, form, action, render."""
