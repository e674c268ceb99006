"""The ads orchestrator."""
