"""What reliable delivery is made of: windows, repair, round trips, fragments."""
