"""The short-term windows of sessions, and the write-behind rows that their changelogs keep."""
