"""Import of chats: files of several formats become our records. It needs no broker."""
