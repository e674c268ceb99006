"""Who wakes a runner. The database is always the truth; whatever wakes somebody is only a hint."""
