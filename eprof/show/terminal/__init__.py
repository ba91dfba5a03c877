"""What a terminal shows, by rich: a module a document, and the lists of costs and counters."""
