"""What the processes of a site say to each other: messages, shared page, addresses, keys."""
