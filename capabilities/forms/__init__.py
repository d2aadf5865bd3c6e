"""What people type on the pages of this app, checked before an action is called."""
