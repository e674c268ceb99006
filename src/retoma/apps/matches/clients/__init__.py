"""The sites that matches are scraped from: how a page is had, and how each layout is read."""
