"""The agent process of a session: started, listened to, served, configured, replaced."""
