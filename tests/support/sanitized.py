"""Whether this process runs under AddressSanitizer: its shadow memory is larger than any limit of memory."""
import os

SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
