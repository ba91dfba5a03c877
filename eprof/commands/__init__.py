"""The commands, a folder each: options, model, document, words, page. They are found by their folders."""
