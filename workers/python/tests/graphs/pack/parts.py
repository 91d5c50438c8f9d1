from graphs import trivial  # noqa: F401
