"""What to try, and what it saves: levers of all kinds, and what to count where too little is known."""
