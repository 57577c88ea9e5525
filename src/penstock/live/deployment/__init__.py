"""What `penstock up` starts."""
