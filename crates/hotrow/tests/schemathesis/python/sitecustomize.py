"""ast.parse of Python 3.11 and 3.12 fails now and then where two threads use it (python/cpython#106905): one at a time."""

import ast
import threading

_parse = ast.parse
_lock = threading.Lock()


def _parse_alone(*arguments, **options):
    with _lock:
        return _parse(*arguments, **options)


ast.parse = _parse_alone
