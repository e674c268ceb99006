"""Every verb and what it takes, by what it is about. What a verb does is imported when it is run."""
