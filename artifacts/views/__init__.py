"""The pages of this app; each view is four moves: find, form, action, render."""
