"""Zabbix: eight senders send 25 values of five items each, which open and solve two problems per item."""

import gzip
import json
import re
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import psycopg
from program import DEBIAN, LIBRARIES, free_port, main, process, until

# Details of templates, which no host here uses. They are three quarters of the 130,000 statements.
DETAILS = ["graphs_items", "item_condition", "item_preproc", "item_tag", "trigger_depends", "trigger_tag", "valuemap_mapping"]
LEFT_OUT = tuple(f"INSERT INTO {table} " for table in DETAILS)
SCHEMA = ["schema", "images", "data"]
SENDERS, ITEMS_OF_SENDER, VALUES = 8, 5, 25
ITEMS = SENDERS * ITEMS_OF_SENDER
PROBLEMS_OF_ITEM = 2
FIRST = 1_000_000
HOST = f"""
update hosts set status = 1 where host = 'Zabbix server'; -- checks of the server itself are due at times of their own
insert into hosts (hostid, host, name, status) values ({FIRST}, 'shop', 'shop', 0);
insert into hosts_groups (hostgroupid, hostid, groupid) values ({FIRST}, {FIRST}, 2);
insert into items (itemid, hostid, type, name, key_, value_type)
    select {FIRST} + n, {FIRST}, 2, 'item ' || n, 'item[' || n || ']', 3 from generate_series(0, {ITEMS - 1}) n;
insert into item_rtdata (itemid) select {FIRST} + n from generate_series(0, {ITEMS - 1}) n;
insert into triggers (triggerid, expression, description, priority)
    select {FIRST} + n, '{{' || {FIRST} + n || '}}>7', 'item ' || n || ' is high', 3 from generate_series(0, {ITEMS - 1}) n;
insert into functions (functionid, itemid, triggerid, name, parameter)
    select {FIRST} + n, {FIRST} + n, {FIRST} + n, 'last', '$' from generate_series(0, {ITEMS - 1}) n;
"""
# One process takes the values: two of them could swap values of an item, which opens another problem.
SETTINGS = """
AllowRoot=1
LogType=console
PidFile={folder}/pid
SocketDir={folder}
ListenIP=127.0.0.1
ListenPort={port}
DBHost={database.hostname}
DBPort={database.port}
DBName={name}
DBUser={database.username}
StartPollers=1
StartPollersUnreachable=1
StartPingers=0
StartDiscoverers=0
StartHTTPPollers=0
StartTrappers=1
"""


def setup(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as client:
        for name in SCHEMA:
            script = gzip.decompress((DEBIAN / f"usr/share/zabbix-server-pgsql/{name}.sql.gz").read_bytes()).decode()
            for statement in re.split("(?m)^(?=INSERT INTO |COMMIT;)", script):
                if not statement.startswith(LEFT_OUT):
                    client.execute(statement)
        client.execute(HOST)


def send(port: int, values: list[dict[str, object]]) -> str:
    """Sends values by the protocol of zabbix_sender. Returns what the server says about them."""
    request = json.dumps({"request": "sender data", "data": values}).encode()
    with socket.create_connection(("127.0.0.1", port)) as server, server.makefile("rb") as answer:
        server.sendall(b"ZBXD\1" + struct.pack("<II", len(request), 0) + request)
        return json.loads(answer.read()[13:])["info"]


def smoke(url: str) -> int:
    with TemporaryDirectory() as folder, psycopg.connect(url, autocommit=True) as client:
        port, database = free_port(range(20_000, 32_768)), urlsplit(url)
        settings = Path(folder) / "zabbix_server.conf"
        settings.write_text(SETTINGS.format(folder=folder, port=port, database=database, name=database.path[1:]))
        program = [str(DEBIAN / "usr/sbin/zabbix_server"), "-f", "-c", str(settings)]
        began = int(time.time()) - VALUES

        def ready() -> bool:
            try:
                return send(port, []).startswith("processed: 0;")
            except ConnectionError:
                return False

        def report(sender: int) -> None:
            for number in range(VALUES):
                items = range(sender * ITEMS_OF_SENDER, (sender + 1) * ITEMS_OF_SENDER)
                about = {"host": "shop", "value": number % 10, "clock": began + number, "ns": 0}
                info = send(port, [{**about, "key": f"item[{item}]"} for item in items])
                assert info.startswith(f"processed: {ITEMS_OF_SENDER}; failed: 0;"), info

        def stored() -> tuple[int, int]:
            return client.execute(
                "select (select count(*) from history_uint where itemid >= %(first)s),"
                " (select count(*) from problem where objectid >= %(first)s and r_eventid is not null)",
                {"first": FIRST},
            ).fetchone()

        with process(program, {"LD_LIBRARY_PATH": LIBRARIES}, ready):
            with ThreadPoolExecutor(SENDERS) as senders:
                list(senders.map(report, range(SENDERS)))
            expected = (ITEMS * VALUES, ITEMS * PROBLEMS_OF_ITEM)
            until(lambda: stored() == expected, "the server stores the values and solves the problems")
    return ITEMS * VALUES


main(setup, smoke)
