"""What tests share: schema instances, checks, scripted peers."""
