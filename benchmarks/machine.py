"""The machine and source of a figure: the processor, its cores and memory, the commit of the source tree."""
import os
import platform
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def name():
    """Model of the processor, cores that may be used, memory, kernel."""
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), platform.machine())
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) / 2 ** 20
    kernel = platform.release().split("-")[0]
    return "%s, %d cores, %.0f GB, Linux %s" % (model, len(os.sched_getaffinity(0)), memory, kernel)


def revision():
    """The commit of the source tree, "+" where files of the engine are changed; None outside of a repository."""
    def git(*arguments):
        return subprocess.run(["git", "-C", HERE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              universal_newlines=True, check=True).stdout.strip()
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", "../src", "../python", "../plugins")
        return git("rev-parse", "--short=9", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
