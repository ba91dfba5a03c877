"""Words and numbers as people read them; the page, the terminal and the files say the same."""
