"""A profile, with and without prices; its groups, what-if answers and documents."""
