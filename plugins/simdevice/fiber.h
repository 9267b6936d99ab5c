// A function with a stack of its own, which pauses and goes on. All of one fiber happens on one thread. Its stack is
// kept for the next function. What is thrown must not leave the function. What lies on the stack of one that is given
// up while it pauses is not destroyed.
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
  void give_up();                                                                 // what it does, while it pauses
  void go_on();                                                                   // until it pauses, or has returned
  void pause();                                                                   // called on the fiber

 private:
  // Where one of the two sides stands. AddressSanitizer wants to know which stack a thread is on.
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
