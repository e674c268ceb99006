"""The leagues that come with us, a file for each."""
