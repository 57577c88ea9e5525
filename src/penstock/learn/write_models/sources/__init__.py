"""Where samples come from: one file a source, each giving Samples or saying why it cannot."""
