// A function with its own stack, which can pause and resume. One fiber stays on one thread. Its stack is reused for the
// next function. Exceptions must not leave the function. Objects on the stack of an abandoned fiber are not destroyed.
#pragma once
#include <ucontext.h>

#include <cstddef>

namespace anabranch::simdevice {

class Fiber {
 public:
  using Function = void (*)(void* arg);

  // False under ThreadSanitizer, whose own fibers end the process after many switches (gcc 12).
  static bool work_here();

  explicit Fiber(size_t stack_bytes);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void begin(Function function, void* arg) { function_ = function, arg_ = arg; }  // the next go_on() calls it
  // abandons the function while it is paused
  void give_up();
  void go_on();  // until it pauses, or has returned
  void pause();  // called on the fiber

 private:
  // Saved state of one of the two sides. AddressSanitizer must know the stack of a thread.
  struct Side {
    void* registers[5];
    void* fake_stack;
    const void* stack;
    size_t bytes;
  };

  static void main();
  void enter();
  void leave(Side& from, Side& to);
  void arrive(Side& here, Side& from);

  Function function_ = nullptr;
  void* arg_ = nullptr;
  void* memory_;
  size_t memory_bytes_;
  ucontext_t start_;
  bool started_ = false;
  Side owner_{}, own_{};
};

}  // namespace anabranch::simdevice
