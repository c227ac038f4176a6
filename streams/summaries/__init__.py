"""Daily summaries: requests from `summary-requests` become Markdown files."""
