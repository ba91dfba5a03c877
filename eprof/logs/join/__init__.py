"""What several logs say together: one row for each device and kernel."""
