"""What NVIDIA's profilers share: how they are started, tables and databases of nsys, rows added up while read."""

KIND = "nsys-summary"
