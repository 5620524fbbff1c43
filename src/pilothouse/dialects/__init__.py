"""Dialects: one vocabulary each, turned into unified events or made from them. Pure functions of their arguments."""
