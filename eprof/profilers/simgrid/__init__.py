"""SimGrid, which simulates clusters that run MPI programs: how it is started, and the energies that it prints."""
