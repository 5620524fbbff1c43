"""What happens in a session becomes events of the log, and is completed after a crash."""
