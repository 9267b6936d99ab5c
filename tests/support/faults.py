"""Calls of the C library that fail, or at which the process dies: a library for LD_PRELOAD, set by variables of the
environment.

FAULT_CALL: names of calls, separated by commas. FAULT_AT: the number of the call at which it happens, from 1 on, or 0
to count only. FAULT_HOW: "fail" (error EIO) or "die" (exit code 9). Calls count after ``arm()`` if FAULT_ARMED is 0.
"""
import ctypes
import os
import subprocess
import sys

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static volatile int armed = -1, calls;
void fault_arm(void) { armed = 1; }
int fault_calls(void) { return calls; }
static int hit(const char* name) {
  const char* what = getenv("FAULT_CALL");
  const char* at = getenv("FAULT_AT");
  const char* how = getenv("FAULT_HOW");
  if (armed < 0) { const char* a = getenv("FAULT_ARMED"); armed = !a || atoi(a); }
  if (!what || !at || !armed) return 0;
  const char* found = strstr(what, name);
  size_t n = strlen(name);
  while (found && !((found == what || found[-1] == ',') && (found[n] == 0 || found[n] == ',')))
    found = strstr(found + 1, name);
  if (!found || __sync_add_and_fetch(&calls, 1) != atoi(at)) return 0;
  if (how && strcmp(how, "die") == 0) _exit(9);
  return 1;
}
#define FAIL(type, name, args, ...) \\
  if (hit(#name)) { errno = EIO; return -1; } \\
  type (*real) args = (type (*) args)dlsym(RTLD_NEXT, #name); \\
  return real(__VA_ARGS__);
int rename(const char* a, const char* b) { FAIL(int, rename, (const char*, const char*), a, b) }
int fsync(int fd) { FAIL(int, fsync, (int), fd) }
int mkdir(const char* a, mode_t m) { FAIL(int, mkdir, (const char*, mode_t), a, m) }
int rmdir(const char* a) { FAIL(int, rmdir, (const char*), a) }
int unlink(const char* a) { FAIL(int, unlink, (const char*), a) }
int unlinkat(int d, const char* a, int f) { FAIL(int, unlinkat, (int, const char*, int), d, a, f) }
ssize_t write(int fd, const void* p, size_t n) {
  if (fd > 2 && hit("write")) { errno = EIO; return -1; }
  ssize_t (*real)(int, const void*, size_t) = (ssize_t (*)(int, const void*, size_t))dlsym(RTLD_NEXT, "write");
  return real(fd, p, n);
}
"""


def library(folder):
    """str: the library, compiled in ``folder``."""
    source, made = os.path.join(folder, "faults.c"), os.path.join(folder, "faults.so")
    with open(source, "w") as file:
        file.write(SOURCE)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)  # noqa: S603, S607
    return made


def environment(library, call, at, how="fail", armed=True):
    """dict: the environment of a process with faults."""
    preload = os.environ.get("LD_PRELOAD", "") + " " + library  # a sanitizer comes first
    return dict(os.environ, LD_PRELOAD=preload, FAULT_CALL=call, FAULT_AT=str(at), FAULT_HOW=how,
                FAULT_ARMED=str(int(armed)), FAULT_LIBRARY=library,
                PYTHONDONTWRITEBYTECODE="1",  # Python's files are renamed, too
                PYTHONPATH=os.pathsep.join(sys.path))


def arm():
    """Calls of this process count from now on."""
    ctypes.CDLL(os.environ["FAULT_LIBRARY"]).fault_arm()


def calls():
    """int: calls that have counted."""
    return ctypes.CDLL(os.environ["FAULT_LIBRARY"]).fault_calls()
