"""The pages of this app: each view finds, fills a form, acts, renders."""
