"""Daily summaries: their files, the folders of users, and the summary requests that failed."""
