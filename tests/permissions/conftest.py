"""The world that these tests act on."""

from support.permission_world import permission_world
from support.smb_share import smb, smb_server

__all__ = ["permission_world", "smb", "smb_server"]
