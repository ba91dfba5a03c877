"""The meters: NVML for NVIDIA GPUs, the rails of a Jetson board, RAPL for the host."""
