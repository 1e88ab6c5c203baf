"""What must hold after a run: each kind of check is a file."""
