"""summary-requests: a day of messages becomes a Markdown file."""
