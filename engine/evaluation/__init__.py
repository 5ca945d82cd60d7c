"""Measurements that the program makes of itself: `longshelf bench` and `longshelf eval`."""
