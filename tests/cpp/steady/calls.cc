#include "steady/calls.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <new>

namespace anabranch::steady {
namespace {

std::atomic<bool> counting{false};
thread_local bool counting_here = false;
thread_local bool looking_up = false;  // looking a caller up may call what is counted

bool lies_in(void* code, const char* library) {
  Dl_info info{};
  return dladdr(code, &info) && info.dli_fname && std::strstr(info.dli_fname, library);
}

// The simulated device calls the heap through its own libraries, too.
bool in_library(void* caller) {
  if (lies_in(caller, "dnnl")) return true;
  void* frames[32];
  const int count = backtrace(frames, 32);
  for (int i = 0; i < count; ++i) {
    if (lies_in(frames[i], "anabranch_simdevice")) return true;
  }
  return false;
}

}  // namespace

Calls& calls() {
  static Calls all;
  return all;
}

void count(bool on) { counting.store(on); }
void count_here(bool on) { counting_here = on; }

void note(std::atomic<int>& own, std::atomic<int>& library, void* caller) {
  if (!(counting.load(std::memory_order_relaxed) || counting_here) || looking_up) return;
  looking_up = true;
  (in_library(caller) ? library : own).fetch_add(1);
  looking_up = false;
}

void note_allocation(void* caller) { note(calls().allocations, calls().library_allocations, caller); }
void note_lock(void* caller) { note(calls().locks, calls().library_locks, caller); }

void note_syscall(long number, long operation) {
  if (!counting.load(std::memory_order_relaxed) || number != SYS_futex) return;
  const bool wake = (operation & FUTEX_CMD_MASK) == FUTEX_WAKE;
  (wake ? calls().wakes : calls().waits).fetch_add(1);
}

}  // namespace anabranch::steady

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)

bool anabranch::steady::can_count() { return false; }

#else

bool anabranch::steady::can_count() { return true; }

#define CALLER __builtin_return_address(0)
using anabranch::steady::note_allocation;

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);

void* malloc(size_t n) {
  note_allocation(CALLER);
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) {
  note_allocation(CALLER);
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) {
  note_allocation(CALLER);
  return __libc_realloc(p, n);
}
void* aligned_alloc(size_t alignment, size_t n) {
  note_allocation(CALLER);
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** out, size_t alignment, size_t n) {
  note_allocation(CALLER);
  *out = __libc_memalign(alignment, n);
  return *out ? 0 : ENOMEM;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  using Lock = int (*)(pthread_mutex_t*);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  anabranch::steady::note_lock(CALLER);
  return real(mutex);
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& x : a) x = va_arg(list, long);
  va_end(list);
  anabranch::steady::note_syscall(number, a[1]);
  long result = 0;
  register long r10 asm("r10") = a[3];
  register long r8 asm("r8") = a[4];
  register long r9 asm("r9") = a[5];
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return result;
  errno = static_cast<int>(-result);
  return -1;
}
}

void* operator new(size_t n) {
  note_allocation(CALLER);
  if (void* p = __libc_malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t n, std::align_val_t alignment) {
  note_allocation(CALLER);
  if (void* p = __libc_memalign(static_cast<size_t>(alignment), n ? n : 1)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { free(p); }

#endif
