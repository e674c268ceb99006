"""What is asked of the rows of the matches application: one file for each verb."""
