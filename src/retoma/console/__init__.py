"""What verbs of the command line share: databases, output, exits, options, processes."""
