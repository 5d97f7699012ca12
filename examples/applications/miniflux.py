"""Miniflux, a feed reader: reads a feed of 40 entries, then marks and stars them from eight clients."""

import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from program import INSTALLED, Api, basic, free_port, main, running

PROGRAM = str(INSTALLED / "bin" / "miniflux.app")
ENTRIES = 40
ITEM = "<item><title>{0}</title><link>http://127.0.0.1/{0}</link><guid>{0}</guid></item>"
FEED = f"<rss version='2.0'><channel><title>News</title>{''.join(map(ITEM.format, range(ENTRIES)))}</channel></rss>"


class Feed(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml")
        self.end_headers()
        self.wfile.write(FEED.encode())

    def log_message(self, *_: object) -> None:
        pass


def started(url: str):
    """The server, which first creates its schema and its administrator if they do not exist. Its address is the result."""
    port = free_port()
    environment = {
        "DATABASE_URL": f"{url}?sslmode=disable",
        "LISTEN_ADDR": f"127.0.0.1:{port}",
        "RUN_MIGRATIONS": "1",
        "CREATE_ADMIN": "1",
        "ADMIN_USERNAME": "admin",
        "ADMIN_PASSWORD": "password",
        "FETCHER_ALLOW_PRIVATE_NETWORKS": "1",
    }
    return running([PROGRAM], environment, f"http://127.0.0.1:{port}", "/healthcheck")


def setup(url: str) -> None:
    with started(url):
        pass


def smoke(url: str) -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Feed)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with started(url) as address:
        api = Api(address + "/v1", basic("admin", "password"))
        category = api("POST", "/categories", {"title": "News"})
        source = f"http://127.0.0.1:{server.server_port}/feed"
        feed = api("POST", "/feeds", {"feed_url": source, "category_id": category["id"]})
        entries = [entry["id"] for entry in api("GET", "/entries?limit=100")["entries"]]
        assert len(entries) == ENTRIES, entries

        def read(entry: int) -> None:
            api("PUT", "/entries", {"entry_ids": [entry], "status": "read"})
            api("PUT", f"/entries/{entry}/bookmark")

        with ThreadPoolExecutor(8) as clients:
            list(clients.map(read, entries))
        api("PUT", f"/feeds/{feed['feed_id']}/refresh")
        starred = api("GET", "/entries?starred=true&status=read&limit=100")
        assert starred["total"] == ENTRIES, starred["total"]
        return starred["total"]


main(setup, smoke)
