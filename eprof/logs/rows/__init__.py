"""What every reader of logs is made of: a log as blocks of lines, columns of text, cells, tables."""
