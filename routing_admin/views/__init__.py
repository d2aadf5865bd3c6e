"""What do people see? One folder per family of pages; each view has four steps: find, form, action, render."""
