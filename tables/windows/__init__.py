"""The short-term windows of sessions, in tables whose changed rows are written to changelogs at each flush."""
