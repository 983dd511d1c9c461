from typing import Any

class HTTPFileSystem:
    loop: Any
