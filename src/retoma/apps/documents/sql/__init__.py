"""What is asked of the rows of the documents application: one file for each verb."""
