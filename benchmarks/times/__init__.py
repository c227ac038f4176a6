"""Time expressions in chats: lines with the windows that they mean, and libraries that resolve them."""
