"""The design documents, line by line: where each is kept, and the test that shows it. See `README.md`."""
