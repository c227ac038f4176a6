"""What is done beside the stream: on timers, and out of queues."""
