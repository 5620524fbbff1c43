"""Approvals, questions and stored rules, and the acts that they permit."""
