"""What readers and starters of NVIDIA's profilers share: times by nsys, and rows that are added up on the way."""

KIND = "nsys-summary"
