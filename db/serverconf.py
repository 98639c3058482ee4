"""The embedded server's three settings files, written anew at each start."""

from db.bootstrap import ADMIN

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "40",
    "cluster_name": "notewarden",
    "allow_alter_system": "off",
    # Peer authentication is all there is; nobody has a password.
    "password_encryption": "scram-sha-256",
    # Small and safe: fsync, full_page_writes and synchronous_commit stay at their safe defaults.
    "shared_buffers": "128MB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "effective_cache_size": "1GB",
    "random_page_cost": "1.1",
    "jit": "off",
    "huge_pages": "off",
    "io_method": "sync",
    # /dev/shm is small in containers, and what lies there is removed when its owner logs out.
    "dynamic_shared_memory_type": "mmap",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "15min",
    "autovacuum": "on",
    "autovacuum_max_workers": "2",
    # An ERROR goes to the client that caused it; its text may quote a note, so the log does not get it.
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length": "0",
    "log_parameter_max_length_on_error": "0",
    "log_checkpoints": "off",
    "log_autovacuum_min_duration": "-1",
    "logging_collector": "on",
    "log_directory": "../server-log",
    "log_filename": "postgres-%a.log",
    "log_truncate_on_rotation": "on",
    "log_rotation_age": "1d",
    "log_rotation_size": "0",
    "log_file_mode": "0600",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "datestyle": "ISO, YMD",
}


def server_settings(socket_folder: str) -> str:
    """postgresql.conf; `socket_folder` may be relative to the data folder."""
    values = _SETTINGS | {"unix_socket_directories": socket_folder}
    return "".join(f"{name} = {_quoted(value)}\n" for name, value in values.items())


def host_rules() -> str:
    """pg_hba.conf: only the socket, only accounts that the identity map names."""
    return "local all all peer map=ours\n"


def identity_map(peer: str) -> str:
    """pg_ident.conf: the one account `peer`, as the server sees it, may be any role of ours."""
    roles = (ADMIN, "notewarden", "notewarden_reader")
    return "".join(f'ours "{peer}" {role}\n' for role in roles)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
