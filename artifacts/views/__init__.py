"""What do people see of artifacts? Each view has four steps: find, form, action, render."""
