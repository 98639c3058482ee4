"""The directory of a domain, against a real LDAP server that carries what a controller would compute.

What this proves: TLS is verified, names are escaped, odd and absent answers close. What it cannot prove: that
a domain controller computes tokenGroups as documented.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.slapd import ADMIN, BASE, DOMAIN, PASSWORD, Slapd, sid_bytes

from acl.directories.ldap import LdapDirectory, LdapSettings
from acl.directory import make_directory
from acl.sid import Sid
from acl.sid_bytes import pack_sid, unpack_sid
from acl.token import TokenCache, build_token
from notewarden.errors import AskerUnknown, ConfigError, DirectoryUnreachable

# What ldap3 itself uses is not ours.
pytestmark = [
    pytest.mark.filterwarnings("ignore:(tagMap|typeMap) is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:ssl.match_hostname:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # sockets whose certificate it refused
]

ALICE, IT, NESTED, USERS = (Sid(f"{DOMAIN}-{rid}") for rid in (1101, 1201, 1202, 513))


@pytest.fixture
def tidy() -> Iterator[None]:
    """What a library left open is let go of within the test that it belongs to."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slapd]:
    if not shutil.which("slapd", path="/usr/sbin:/usr/bin") or not shutil.which("ldapadd"):
        reason = "needs the packages slapd and ldap-utils"
        if os.environ.get("NOTEWARDEN_REQUIRE_SERVICES") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    running = Slapd(tmp_path_factory.mktemp("slapd"))
    running.start()
    running.group("it", 1201)
    running.user("alice", 1101, [IT, NESTED, USERS, "S-1-5-32-545", "S-1-18-1"])
    running.user("bob", 1102, [USERS], userAccountControl=["514"])
    running.user("carol", 1103, [])
    running.user("dave", 1104, [USERS], userAccountControl=[])
    running.user("expired", 1105, [USERS], accountExpires=["116444736000000000"])
    running.user("lasting", 1106, [USERS], accountExpires=["9223372036854775807"])
    running.user("nas01$", 1107, [USERS], objectClass=["computer"])
    running.user("star*", 1108, [USERS])
    running.user("o'neil (it)", 1109, [USERS], cn=["O\\, Neil \\2B (it) #1"])
    running.add(f"cn=blind,{BASE}", {"objectClass": ["person"], "sn": ["x"], "userPassword": ["blind-pw"]})
    yield running
    running.stop()


def settings(server: Slapd, **changes: Any) -> LdapSettings:
    usual = {
        "url": server.url,
        "base": BASE,
        "username": ADMIN,
        "password": PASSWORD,
        "ca_file": server.ca_file,
    }
    return LdapSettings(**{**usual, "uids": {"1000": "alice", "1001": ALICE, "1002": "bob"}, **changes})


@pytest.fixture
def opened() -> Iterator[Callable[[LdapSettings], LdapDirectory]]:
    """Make a directory that is closed after the test."""
    with ExitStack() as stack:
        yield lambda given: stack.enter_context(closing(LdapDirectory(given)))


@pytest.fixture
def directory(server: Slapd, opened: Callable[[LdapSettings], LdapDirectory]) -> LdapDirectory:
    return opened(settings(server))


def test_a_token_holds_what_token_groups_says(directory: LdapDirectory) -> None:
    alice = directory.user("alice")
    assert (alice.sid, alice.name) == (ALICE, "alice")
    assert directory.user(ALICE) == alice == directory.user("ALICE")
    token = build_token(directory, alice)
    assert {ALICE, IT, NESTED, USERS, "S-1-5-11"} <= token.allow
    assert not any(sid.startswith("S-1-5-32") for sid in token.allow), (
        "the controller's own, not the server's"
    )
    assert {"?S-1-5-32", "?S-1-22-2@host"} <= token.deny, "a file server's groups cannot be ruled out"
    assert token.listed is None


@pytest.mark.parametrize(
    "name", ["bob", "dave", "expired", "nobody", "nas01$", "al*", "*", "", "it", "a)(cn=*", "alice\0"]
)
def test_who_is_no_usable_user_is_refused(directory: LdapDirectory, name: str) -> None:
    with pytest.raises(AskerUnknown):
        directory.user(name)


def test_absent_token_groups_are_an_error(directory: LdapDirectory) -> None:
    with pytest.raises(DirectoryUnreachable) as caught:
        directory.memberships(directory.user("carol"))
    assert "tokenGroups" in str(caught.value)


def test_token_groups_that_may_not_be_read_are_an_error(server: Slapd, opened: Any) -> None:
    blind = opened(settings(server, username=f"cn=blind,{BASE}", password="blind-pw"))
    assert blind.user("alice").sid == ALICE
    with pytest.raises(DirectoryUnreachable):
        build_token(blind, blind.user("alice"))


@pytest.mark.parametrize("name", ["star*", "o'neil (it)", "lasting"])
def test_names_are_escaped(directory: LdapDirectory, name: str) -> None:
    user = directory.user(name)
    assert user.name == name and USERS in build_token(directory, user).allow
    assert directory.resolve(name) == user.sid


def test_a_uid_stands_for_whom_the_configuration_says(directory: LdapDirectory) -> None:
    assert directory.user_by_uid(1000).sid == ALICE == directory.user_by_uid(1001).sid
    for uid in (0, 999, 1002, 1003, 65534):  # 1002 is bob, who is disabled
        with pytest.raises(AskerUnknown):
            directory.user_by_uid(uid)


def test_names_and_sids(directory: LdapDirectory) -> None:
    assert directory.resolve("it") == directory.resolve("group:it") == IT
    assert directory.resolve("user:alice") == ALICE
    for name in ("user:it", "group:alice", "nobody", "*"):
        with pytest.raises(LookupError):
            directory.resolve(name)
    assert directory.name_of(IT) == "it" and directory.name_of(NESTED) is None
    assert directory.name_of(Sid("S-1-5-32-545@nas")) is None


@pytest.mark.parametrize(
    ("sid", "known"),
    [
        (f"{DOMAIN}-1201", True),
        (f"{DOMAIN}-9999", True),  # deleted: it is in nobody's token, on the server neither
        ("S-1-5-11", True),
        ("S-1-5-21-3001-3002-30033-1201", False),
        ("S-1-5-21-1-2-3-1201", False),
        ("S-1-5-32-545@nas", False),
        ("S-1-22-2-1000@nas", False),
        ("S-1-22-2-1000@host", False),
    ],
)
def test_only_the_domains_own_groups_are_known_member_by_member(
    directory: LdapDirectory, sid: str, known: bool
) -> None:
    assert directory.enumerable(Sid(sid)) is known


def test_an_account_disabled_meanwhile_gets_no_token_though_one_is_kept(
    server: Slapd, directory: LdapDirectory
) -> None:
    dn = server.user("erin", 1120, [IT])
    cache = TokenCache(directory, timedelta(hours=1))
    erin = directory.user("erin")
    assert IT in cache.token(erin).allow
    server.replace(dn, {"userAccountControl": ["514"]})
    with pytest.raises(AskerUnknown):
        cache.token(erin)
    server.replace(dn, {"userAccountControl": ["512"], "tokenGroups": [sid_bytes(USERS)]})
    assert IT in cache.token(erin).allow, "within token_ttl"
    assert IT not in cache.token(erin, fresh=True).allow
    server.delete(dn)
    with pytest.raises(AskerUnknown):
        cache.token(erin)


def test_made_anew_under_the_same_name_is_somebody_else(server: Slapd, directory: LdapDirectory) -> None:
    dn = server.user("frank", 1130, [IT])
    frank = directory.user("frank")
    server.delete(dn)
    dn = server.user("frank", 1131, [USERS])
    assert directory.user("frank").sid != frank.sid
    with pytest.raises(AskerUnknown):
        build_token(directory, frank)
    server.delete(dn)


def test_two_accounts_of_one_name_are_nobody(server: Slapd, directory: LdapDirectory) -> None:
    one = server.user("twin", 1140, [IT], cn=["twin1"])
    two = server.user("twin", 1141, [USERS], cn=["twin2"])
    with pytest.raises(AskerUnknown):
        directory.user("twin")
    with pytest.raises(LookupError):
        directory.resolve("twin")
    server.delete(one)
    assert directory.user("twin").sid == f"{DOMAIN}-1141"
    server.delete(two)


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize(
    "change",
    [
        {"password": "wrong"},
        {"username": f"cn=nobody,{BASE}"},
        {"ca_file": "other.pem"},
        {"ca_file": None},
        {"url": "name"},
        {"url": "closed"},
        {"base": "dc=other,dc=com"},
    ],
    ids=str,
)
def test_a_controller_that_is_not_verified_or_refuses_gives_no_answer(
    server: Slapd, change: dict[str, Any], opened: Any
) -> None:
    if change.get("ca_file"):
        change = {"ca_file": server.folder / change["ca_file"]}
    if change.get("url") == "name":  # right certificate, but for another name
        change = {"url": f"ldaps://127.0.0.1:{server.tls_port}"}
    if change.get("url") == "closed":
        change = {"url": "ldaps://localhost:1"}
    with pytest.raises((DirectoryUnreachable, AskerUnknown)) as caught:
        opened(settings(server, **change)).user("alice")
    assert caught.type is (AskerUnknown if "base" in change else DirectoryUnreachable)
    assert PASSWORD not in str(caught.value)


@pytest.mark.usefixtures("tidy")
def test_plain_ldap_is_used_with_tls_only(server: Slapd, opened: Any) -> None:
    assert opened(settings(server, url=server.plain_url)).user("alice").sid == ALICE
    with pytest.raises(DirectoryUnreachable):
        opened(settings(server, url=server.plain_url, ca_file=server.folder / "other.pem")).user("alice")
    for url in ("http://localhost", "ldapi:///", "localhost"):
        with pytest.raises(ConfigError):
            LdapDirectory(settings(server, url=url))


@pytest.mark.usefixtures("tidy")
def test_a_controller_that_comes_back_is_asked_again(opened: Any, server: Slapd) -> None:
    directory = opened(settings(server))
    alice = directory.user("alice")
    server.stop()
    with pytest.raises(DirectoryUnreachable):
        directory.user("alice")
    server.resume()
    assert directory.user("alice") == alice


def test_it_is_configured(server: Slapd, settings_factory: Any, tmp_path: Path) -> None:
    secret = tmp_path / "ldap-password"
    secret.write_text(PASSWORD)
    secret.chmod(0o600)
    ca = tmp_path / "ca.pem"
    ca.write_bytes(server.ca_file.read_bytes())
    ca.chmod(0o644)
    table = {"source": "ldap", "url": server.url, "base": BASE, "username": ADMIN, "password_file": secret}
    found = make_directory(settings_factory(directory={**table, "ca_file": ca, "uids": {"1000": "alice"}}))
    assert isinstance(found, LdapDirectory)
    with closing(found):
        assert found.user_by_uid(1000).sid == ALICE
    with pytest.raises(ConfigError):
        settings_factory(directory={**table, "password_file": ""})
    with pytest.raises(ConfigError):
        settings_factory(directory={**table, "uids": {"alice": "alice"}})


@pytest.mark.parametrize(
    "sid", ["S-1-1-0", f"{DOMAIN}-513", "S-1-5-32-544", "S-1-281474976710655-4294967295", "S-1-18-1"]
)
def test_sids_as_bytes(sid: str) -> None:
    packed = pack_sid(Sid(sid))
    assert packed == sid_bytes(sid) and unpack_sid(packed) == sid
    for damaged in (packed[:-1], packed + b"\0", b"\2" + packed[1:], b""):
        assert unpack_sid(damaged) is None


@pytest.mark.parametrize("sid", ["S-1-22-1-0@host", "S-1-5-21-4294967296", "S-1-999999999999999-1", "alice"])
def test_what_has_no_bytes(sid: str) -> None:
    assert pack_sid(Sid(sid)) is None
