"""The authenticated user as user code sees it (reference 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

AUTH_USER = "langgraph_auth_user"
STUDIO_IDENTITY = "langgraph-studio-user"


class User(dict[str, Any]):
    """A user, as attributes and as items; what the authentication handler left out has its default."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        identity = members.get("identity", "")
        defaults = {"identity": identity, "display_name": identity, "is_authenticated": True, "permissions": []}
        super().__init__({**defaults, **members})

    # Real properties, because the library asks by isinstance whether this is a user.

    @property
    def identity(self) -> str:
        """Return who it is."""
        return self["identity"]

    @property
    def display_name(self) -> str:
        """Return the name to show."""
        return self["display_name"]

    @property
    def is_authenticated(self) -> bool:
        """Say whether the handler accepted the user."""
        return self["is_authenticated"]

    @property
    def permissions(self) -> list[str]:
        """Return what the user may do, in the handler's own words."""
        return self["permissions"]

    def __getattr__(self, name: str) -> Any:
        """Return any other member."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f'the user has no "{name}"') from None


def handler_user(members: Mapping[str, Any]) -> Any:
    """Return a user as authorisation handlers see it: a debugging UI's is the library's own StudioUser."""
    if members.get("kind") == "StudioUser" and members.get("identity") == STUDIO_IDENTITY:
        from langgraph_sdk.auth.types import StudioUser

        return StudioUser(STUDIO_IDENTITY, is_authenticated=True)
    return User(members)


def user_of(config: Mapping[str, Any]) -> Any:
    """Return the user in a config, or None."""
    user = (config.get("configurable") or {}).get(AUTH_USER)
    return User(user) if isinstance(user, Mapping) and not isinstance(user, User) else user


def adopt(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a config that came over the link, with the user in it as an object."""
    out = dict(config or {})
    if (user := user_of(out)) is not None:
        out["configurable"] = {**out["configurable"], AUTH_USER: user}
    return out
