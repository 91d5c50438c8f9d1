from .parts import trivial as agent  # noqa: F401
