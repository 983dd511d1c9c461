from typing import Any

conf: dict[str, dict[str, Any]]
