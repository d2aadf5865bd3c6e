"""What do people see of providers, services and agents? Each view has four steps: find, form, action, render."""
