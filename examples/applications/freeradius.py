"""FreeRADIUS: 100 users log in, and their sessions start, are updated four times, and stop, 16 packets at a time."""

import subprocess
import sys

import psycopg
from program import DEBIAN, LIBRARIES, free_port, main, process

SCHEMA = DEBIAN / "etc/freeradius/3.0/mods-config/sql/main/postgresql/schema.sql"
DICTIONARY = str(DEBIAN / "usr/share/freeradius")
SESSIONS, UPDATES, OCTETS = 100, 4, 1000
USERS = f"""
insert into radcheck (username, attribute, op, value)
    select 'user' || n, 'Cleartext-Password', ':=', 'password' from generate_series(0, {SESSIONS - 1}) n
"""


def setup(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as client:
        client.execute(SCHEMA.read_text())
        client.execute(USERS)


def send(port: int, command: str, packets: list[str], more: list[str]) -> bool:
    """Sends packets in parallel. Whether each was answered, and no login was rejected."""
    program = [str(DEBIAN / "usr/bin/radclient"), "-D", DICTIONARY, *more, f"127.0.0.1:{port}", command, "secret"]
    sent = subprocess.run(program, input="\n\n".join(packets), env={"LD_LIBRARY_PATH": LIBRARIES}, stdout=sys.stderr, text=True)
    return sent.returncode == 0


def session(user: int) -> str:
    return f"User-Name = user{user}\nAcct-Session-Id = session{user}\nNAS-IP-Address = 127.0.0.1\nNAS-Port = {user}"


def smoke(url: str) -> int:
    authentication, accounting = free_port(), free_port()
    environment = {
        "LD_LIBRARY_PATH": LIBRARIES,
        "DEBIAN": str(DEBIAN),
        "DATABASE": psycopg.conninfo.make_conninfo(**psycopg.conninfo.conninfo_to_dict(url)),
        "AUTHENTICATION_PORT": str(authentication),
        "ACCOUNTING_PORT": str(accounting),
    }
    program = [str(DEBIAN / "usr/sbin/freeradius"), "-f", "-n", "freeradius", "-d", ".", "-D", DICTIONARY]

    def ready() -> bool:
        return send(accounting, "status", ["Message-Authenticator = 0x00"], ["-r", "1", "-t", "1"])

    def all_sessions(command: str, port: int, attributes: str) -> None:
        packets = [f"{session(user)}\n{attributes}" for user in range(SESSIONS)]
        assert send(port, command, packets, ["-q", "-p", "16", "-t", "10"]), f"{command}: {attributes}"

    with process(program, environment, ready):
        all_sessions("auth", authentication, "User-Password = password")
        all_sessions("acct", accounting, "Acct-Status-Type = Start")
        for update in range(1, UPDATES + 1):
            octets = f"Acct-Session-Time = {update}, Acct-Input-Octets = {update * OCTETS}"
            all_sessions("acct", accounting, f"Acct-Status-Type = Interim-Update, {octets}")
        octets = f"Acct-Session-Time = {UPDATES + 1}, Acct-Input-Octets = {(UPDATES + 1) * OCTETS}"
        all_sessions("acct", accounting, f"Acct-Status-Type = Stop, Acct-Terminate-Cause = User-Request, {octets}")
    with psycopg.connect(url) as client:
        stopped = client.execute(
            "select count(*), sum(acctinputoctets), sum(acctsessiontime) from radacct"
            " where acctstoptime is not null and acctterminatecause = 'User-Request'"
        ).fetchone()
        accepted = client.execute("select count(*) from radpostauth where reply = 'Access-Accept'").fetchone()
    assert stopped == (SESSIONS, SESSIONS * (UPDATES + 1) * OCTETS, SESSIONS * (UPDATES + 1)), stopped
    assert accepted == (SESSIONS,), accepted
    return SESSIONS


main(setup, smoke)
