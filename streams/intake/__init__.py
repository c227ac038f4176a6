"""conversations: messages become windows, exchanges and promotions."""
