"""Cost tables in words."""


def named(name: str, basis: str | None) -> str:
    """A table with what its prices rest on: "v100 (fitted)"."""
    return f"{name} ({basis or 'basis not stated'})"
