"""Programs of our own that others could have written: each speaks an API that somebody else defined."""
