"""What people do with the ads orchestrator, a module per noun; the API, the pages and the command line call these."""
