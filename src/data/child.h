// A shell command with a file as its stdin, read through a pipe. It runs in a separate process group, with default
// signals and without our open files; its stderr is drained, and the end kept for messages. It is always waited for: at
// its end, or when the object is destroyed, which kills the whole group. No signal handler is changed.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>

namespace anabranch::data {

class Child {
 public:
  struct Limits {
    double silence_s = 0;  // without a byte read or written by it; 0: no limit
    double total_s = 0;    // from its start; 0: no limit
  };

  // Unavailable if the file cannot be opened or the process cannot be created. `stop` makes read() give up.
  Child(const std::string& command, const std::string& input_path, Limits limits, const std::atomic<bool>* stop);
  ~Child();
  Child(const Child&) = delete;

  // At least one byte, or 0 at the end: the command has exited with status 0. Throws Unavailable for any other exit,
  // and when a limit is exceeded; returns 0 with stopped() after a stop.
  size_t read(char* to, size_t capacity);
  bool waits();  // a read would wait for more than kMomentMs
  bool stopped() const { return stop_->load(std::memory_order_relaxed); }
  int64_t consumed() const;  // bytes of its input

 private:
  using Clock = std::chrono::steady_clock;

  void start(int stdin_fd, int stdout_fd, int stderr_fd);
  bool wait_readable(int timeout_ms);  // true: stdout has data, or its end
  void drain_stderr();
  void check_limits();
  void finish();  // stdout is at its end: waits for the process and checks its exit status
  void check_status(int status);
  void kill_group();
  [[noreturn]] void fail(const std::string& what);

  std::string command_, path_;
  Limits limits_;
  const std::atomic<bool>* stop_;
  pid_t pid_ = -1;  // -1: waited for
  int in_ = -1, out_ = -1, err_ = -1;
  bool ended_ = false;
  std::string errors_;    // the last bytes of stderr
  int64_t consumed_ = 0;  // of its stdin, at the last check
  size_t bytes_ = 0;      // of its stdout
  Clock::time_point started_, active_;
};

}  // namespace anabranch::data
