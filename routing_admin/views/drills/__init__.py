"""What happens to fire drills in the browser?"""
