"""The folder that is first on PYTHONPATH under callgrind, so that Python runs its `sitecustomize`."""
