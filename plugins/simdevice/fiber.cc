#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include "failure.h"

// Null where the process has no such sanitizer.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** fake_stack, const void* stack, size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* fake_stack, const void** stack, size_t* bytes);
[[gnu::weak]] void __asan_unpoison_memory_region(const volatile void* from, size_t bytes);
[[gnu::weak]] void __tsan_init();
}

namespace anabranch::simdevice {
namespace {

thread_local Fiber* starting = nullptr;

// swapcontext() asks the kernel for the mask of signals at each switch; these do not. They may not stand in one
// function.
[[gnu::noinline]] void jump(void** to) { __builtin_longjmp(to, 1); }
[[gnu::noinline]] void swap(void** from, void** to) {
  if (__builtin_setjmp(from) == 0) jump(to);
}
[[gnu::noinline]] void start(void** from, const ucontext_t* to) {
  if (__builtin_setjmp(from) == 0) setcontext(to);
}

}  // namespace

// The page below the stack faults.
Fiber::Fiber(size_t stack_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  memory_bytes_ = stack_bytes + page;
  memory_ = mmap(nullptr, memory_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory_ == MAP_FAILED) fail(AB_RESOURCE_EXHAUSTED, "no memory for a stack of ", stack_bytes, " bytes");
  mprotect(memory_, page, PROT_NONE);
  own_.stack = static_cast<char*>(memory_) + page;
  own_.bytes = stack_bytes;
  give_up();
}

void Fiber::give_up() {
  if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(own_.stack, own_.bytes);
  getcontext(&start_);
  start_.uc_stack.ss_sp = const_cast<void*>(own_.stack);
  start_.uc_stack.ss_size = own_.bytes;
  start_.uc_link = nullptr;
  makecontext(&start_, main, 0);
  own_.fake_stack = nullptr;
  started_ = false;
}

Fiber::~Fiber() { munmap(memory_, memory_bytes_); }

bool Fiber::work_here() { return !__tsan_init; }

void Fiber::main() { starting->enter(); }

void Fiber::enter() {
  arrive(own_, owner_);
  for (;;) {
    function_(arg_);
    pause();
  }
}

void Fiber::go_on() {
  leave(owner_, own_);
  if (started_) {
    swap(owner_.registers, own_.registers);
  } else {
    started_ = true;
    starting = this;
    start(owner_.registers, &start_);
  }
  Side unused;
  arrive(owner_, unused);
}

void Fiber::pause() {
  leave(own_, owner_);
  swap(own_.registers, owner_.registers);
  arrive(own_, owner_);
}

void Fiber::leave(Side& from, Side& to) {
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.bytes);
}

void Fiber::arrive(Side& here, Side& from) {
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(here.fake_stack, &from.stack, &from.bytes);
}

}  // namespace anabranch::simdevice
