"""How are fire drills started, watched and ended in the browser?"""
