"""Files that appear complete or not at all."""
import os
import tempfile


def write_whole(path, data):
    """Writes bytes to a temporary file next to ``path`` and renames it. Creates parent folders.

    Raises:
        OSError: the file cannot be written.
    """
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
