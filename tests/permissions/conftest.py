"""The world that these tests act on."""

from support.permission_world import permission_world

__all__ = ["permission_world"]
