"""Shared types: records, memories, settings, errors and topic names. Imports no other package of ours."""
