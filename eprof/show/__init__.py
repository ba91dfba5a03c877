"""What shows a document: its words as blocks, and what draws these on a page, a terminal, in files."""
