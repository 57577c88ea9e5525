"""What is known of a file system: layouts and targets."""
