"""What do people see of artifacts? Each view is four moves: find, form, action, render."""
