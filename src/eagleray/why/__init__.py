"""`eagleray why`: what an object waits for, and what would help."""
