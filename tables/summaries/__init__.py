"""Daily summaries: their files, whose folders they lie in, and the requests that failed."""
