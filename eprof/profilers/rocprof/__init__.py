"""Tables of AMD's profilers: rocprof, rocprofv3, Omniperf and rocprof-compute."""
