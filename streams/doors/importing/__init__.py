"""Chats from elsewhere: files of several formats become records of ours. No broker is needed for it."""
