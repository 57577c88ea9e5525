"""Results for people: tables, figures and self-contained pages, made of records alone."""
