"""What do people type on the pages of this app? Checked here, before an action is called."""
