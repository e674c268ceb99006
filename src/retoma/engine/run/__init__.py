"""A runner and the attempts that it makes."""
