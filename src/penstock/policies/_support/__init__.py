"""What several policies share; no policy is here."""
