"""Daily summaries: their files, the users' folders, and the requests that failed."""
