"""`python -m retoma`: the command line, where its script is not on the PATH."""

from retoma.cli import main

# A sync step's child process imports this module again: it must not run the command twice.
if __name__ == "__main__":
    main()
