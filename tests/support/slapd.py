# ruff: noqa: E501 - a schema is written as it is
"""A throw-away slapd that carries what Active Directory would compute: real LDAP and TLS, borrowed attributes.

It proves how we speak: filters, escapes, TLS, binds, what absent and odd answers do. It cannot prove that a
controller fills tokenGroups rightly: there it holds what the test put in.
"""

from __future__ import annotations

import base64
import contextlib
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DOMAIN = "S-1-5-21-3001-3002-3003"
BASE = "dc=example,dc=com"
ADMIN, PASSWORD = f"cn=admin,{BASE}", "test-only"

# Names, ids and syntaxes as Active Directory has them (MS-ADA1 to 3). Ours is the OID arc of the odd class.
_SCHEMA = """
attributetype ( 1.2.840.113556.1.4.221 NAME 'sAMAccountName' EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch
  SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.146 NAME 'objectSid' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.1301 NAME 'tokenGroups' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
attributetype ( 1.2.840.113556.1.4.8 NAME 'userAccountControl' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
attributetype ( 1.2.840.113556.1.4.159 NAME 'accountExpires' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )
objectclass ( 1.2.840.113556.1.5.9 NAME 'user' SUP top STRUCTURAL MUST ( cn $ sAMAccountName )
  MAY ( objectSid $ tokenGroups $ userAccountControl $ accountExpires ) )
objectclass ( 1.2.840.113556.1.3.30 NAME 'computer' SUP user STRUCTURAL )
objectclass ( 1.2.840.113556.1.5.8 NAME 'group' SUP top STRUCTURAL MUST ( cn $ sAMAccountName ) MAY ( objectSid ) )
objectclass ( 1.2.840.113556.1.5.67 NAME 'domainDNS' SUP top STRUCTURAL MUST dc MAY objectSid )
"""

_CONF = """
include /etc/ldap/schema/core.schema
include {folder}/ad.schema
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCACertificateFile {folder}/ca.pem
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.key
disallow bind_anon
require bind
database mdb
suffix "{base}"
rootdn "{admin}"
rootpw {password}
directory {folder}/db
maxsize 10485760
access to attrs=tokenGroups by dn.exact="cn=blind,{base}" none by * read
access to * by * read
"""


@dataclass
class Slapd:
    """A server on two ports of 127.0.0.1; its certificate names localhost alone."""

    folder: Path
    port: int = 0
    tls_port: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        return f"ldaps://localhost:{self.tls_port}"

    @property
    def plain_url(self) -> str:
        return f"ldap://localhost:{self.port}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def start(self) -> None:
        (self.folder / "db").mkdir()
        (self.folder / "ad.schema").write_text(_SCHEMA)
        conf = _CONF.format(folder=self.folder, base=BASE, admin=ADMIN, password=PASSWORD)
        (self.folder / "slapd.conf").write_text(conf)
        _make_certificates(self.folder)
        self.port, self.tls_port = _free_port(), _free_port()
        self.resume()
        domain = {"objectClass": ["domainDNS"], "dc": ["example"], "objectSid": [sid_bytes(DOMAIN)]}
        self.add(BASE, domain)

    def resume(self) -> None:
        urls = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        self._process = subprocess.Popen(
            ["/usr/sbin/slapd", "-f", str(self.folder / "slapd.conf"), "-h", urls, "-d", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.tls_port), 1):
                return
            assert self._process.poll() is None and time.monotonic() < deadline, "slapd did not start"
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def add(self, dn: str, values: Mapping[str, Sequence[str | bytes]]) -> None:
        self._ldif("ldapadd", "\n".join([_line("dn", dn), *_lines(values)]) + "\n")

    def replace(self, dn: str, values: Mapping[str, Sequence[str | bytes]]) -> None:
        parts = ["\n".join([f"replace: {name}", *_lines({name: given})]) for name, given in values.items()]
        self._ldif(
            "ldapmodify", "\n".join([_line("dn", dn), "changetype: modify", "\n-\n".join(parts)]) + "\n"
        )

    def delete(self, dn: str) -> None:
        self._ldif("ldapmodify", f"{_line('dn', dn)}\nchangetype: delete\n")

    def user(self, name: str, rid: int, groups: Sequence[str], **more: Sequence[str | bytes]) -> str:
        """Add a user with the groups that a controller would compute; returns its dn."""
        dn = f"cn={more.pop('cn', [name])[0]},{BASE}"  # type: ignore[str-bytes-safe]
        values: dict[str, Sequence[str | bytes]] = {
            "objectClass": ["user"],
            "sAMAccountName": [name],
            "objectSid": [sid_bytes(f"{DOMAIN}-{rid}")],
            "userAccountControl": ["512"],
            "tokenGroups": [sid_bytes(one) for one in groups],
            **more,
        }
        self.add(dn, {key: given for key, given in values.items() if given})
        return dn

    def group(self, name: str, rid: int) -> str:
        dn = f"cn={name},{BASE}"
        self.add(
            dn,
            {"objectClass": ["group"], "sAMAccountName": [name], "objectSid": [sid_bytes(f"{DOMAIN}-{rid}")]},
        )
        return dn

    def _ldif(self, program: str, text: str) -> None:
        done = subprocess.run(
            [program, "-x", "-D", ADMIN, "-w", PASSWORD, "-H", f"ldap://127.0.0.1:{self.port}"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}{done.stderr}"


def sid_bytes(sid: str) -> bytes:
    """A SID's bytes by MS-DTYP 2.4.2.2, written down a second time."""
    parts = [int(one) for one in sid.split("-")[2:]]
    tail = b"".join(part.to_bytes(4, "little") for part in parts[1:])
    return bytes([1, len(parts) - 1]) + parts[0].to_bytes(6, "big") + tail


def _lines(values: Mapping[str, Sequence[str | bytes]]) -> list[str]:
    return [_line(name, value) for name, given in values.items() for value in given]


def _line(name: str, value: str | bytes) -> str:
    raw = value if isinstance(value, bytes) else value.encode()
    return f"{name}:: {base64.b64encode(raw).decode()}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _make_certificates(folder: Path) -> None:
    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=folder)

    key = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test CA")
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    (folder / "san").write_text("subjectAltName=DNS:localhost\n")
    signing = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "san")
    openssl("x509", "-req", "-in", "server.csr", "-out", "server.pem", *signing)
    key_arguments = ("-x509", *key, "-keyout", "other.key", "-out", "other.pem", "-days", "2")
    openssl("req", *key_arguments, "-subj", "/CN=Another CA")
