#include "data/child.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/error.h"

extern char** environ;

namespace anabranch::data {
namespace {

constexpr int kMomentMs = 20;
constexpr int kLookMs = 50;           // reaction time to a stop
constexpr size_t kStderrTail = 2000;  // bytes kept for messages
constexpr int kPipeBytes = 1 << 20;   // requested, so that reader and command alternate less often

void close_fd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

struct SpawnSetup {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;

  SpawnSetup(int stdin_fd, int stdout_fd, int stderr_fd) {
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, stdin_fd, 0);
    posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, stderr_fd, 2);
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);  // includes files that others opened without O_CLOEXEC
#endif
    posix_spawnattr_init(&attributes);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);  // Python ignores SIGPIPE; commands must die of it
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSetup() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

// Descriptors above 2, so that duplicating them to 0, 1 and 2 closes none of them.
void make_pipe(int* ends) {
  AB_CHECK(pipe2(ends, O_CLOEXEC) == 0, Unavailable, "cannot make a pipe: {}", std::strerror(errno));
  for (int i = 0; i < 2; ++i) {
    if (ends[i] > 2) continue;
    const int moved = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
    close(ends[i]);
    ends[i] = moved;
  }
}

// Opening a named pipe for reading would wait for a writer that may never come, and could not be stopped: here the wait
// is for the first bytes.
int open_above_two(const std::string& path, const std::atomic<bool>* stop) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode)) {
    pollfd reads{fd, POLLIN, 0};
    while (!stop->load(std::memory_order_relaxed) && poll(&reads, 1, kLookMs) <= 0) {
    }
  }
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  if (fd >= 0 && fd <= 2) {
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    close(fd);
    fd = moved;
  }
  return fd;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

Child::Child(const std::string& command, const std::string& input_path, Limits limits, const std::atomic<bool>* stop)
    : command_(command), path_(input_path), limits_(limits), stop_(stop), started_(Clock::now()), active_(started_) {
  in_ = open_above_two(path_, stop);
  const int error = errno;
  AB_CHECK(in_ >= 0 || error != ENOENT, NotFound, "file {} does not exist", path_);
  AB_CHECK(in_ >= 0, Unavailable, "cannot open {}: {}", path_, std::strerror(error));
  int out[2] = {-1, -1}, err[2] = {-1, -1};
  try {
    make_pipe(out);
    make_pipe(err);
    start(in_, out[1], err[1]);
  } catch (...) {
    for (int* fd : {&out[0], &out[1], &err[0], &err[1], &in_}) close_fd(fd);
    throw;
  }
  close_fd(&out[1]);
  close_fd(&err[1]);
  out_ = out[0];
  err_ = err[0];
  fcntl(out_, F_SETPIPE_SZ, kPipeBytes);  // a hint
  fcntl(err_, F_SETFL, O_NONBLOCK);
}

Child::~Child() {
  kill_group();
  for (int* fd : {&out_, &err_, &in_}) close_fd(fd);
}

void Child::start(int stdin_fd, int stdout_fd, int stderr_fd) {
  SpawnSetup setup(stdin_fd, stdout_fd, stderr_fd);
  std::string shell = "sh", option = "-c", text = command_;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  const int error = posix_spawn(&pid_, "/bin/sh", &setup.actions, &setup.attributes, arguments, environ);
  if (error) pid_ = -1;
  AB_CHECK(error == 0, Unavailable, "cannot start the pipe command \"{}\": {}", command_, std::strerror(error));
}

void Child::kill_group() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

void Child::drain_stderr() {
  char buffer[4096];
  while (err_ >= 0) {
    const ssize_t n = ::read(err_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      close_fd(&err_);
      return;
    }
    active_ = Clock::now();
    errors_.append(buffer, static_cast<size_t>(n));
    if (errors_.size() > 2 * kStderrTail) errors_.erase(0, errors_.size() - kStderrTail);
  }
}

bool Child::wait_readable(int timeout_ms) {
  pollfd fds[2] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}};  // poll ignores -1
  const int ready = poll(fds, 2, timeout_ms);
  if (ready > 0 && fds[1].revents) drain_stderr();
  return ready > 0 && fds[0].revents;
}

// The offset of a file is shared with the process that has it as its stdin.
int64_t Child::consumed() const { return std::max<off_t>(lseek(in_, 0, SEEK_CUR), 0); }

bool Child::waits() { return !ended_ && !wait_readable(kMomentMs); }

void Child::check_limits() {
  const int64_t at = consumed();
  if (at != consumed_) {
    consumed_ = at;
    active_ = Clock::now();
  }
  if (limits_.silence_s > 0 && seconds_since(active_) > limits_.silence_s) {
    fail(fmt::format("was killed: it has read and written nothing for {} s", limits_.silence_s));
  }
  if (limits_.total_s > 0 && seconds_since(started_) > limits_.total_s) {
    fail(fmt::format("was killed: it ran for more than {} s", limits_.total_s));
  }
}

size_t Child::read(char* to, size_t capacity) {
  while (!ended_ && !stopped()) {
    if (!wait_readable(kLookMs)) {
      check_limits();
      continue;
    }
    const ssize_t n = ::read(out_, to, capacity);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail(fmt::format("cannot be read: {}", std::strerror(errno)));
    if (n == 0) {
      finish();
      break;
    }
    bytes_ += static_cast<size_t>(n);
    active_ = Clock::now();
    if (limits_.total_s > 0) check_limits();
    return static_cast<size_t>(n);
  }
  return 0;
}

void Child::finish() {
  ended_ = true;
  close_fd(&out_);
  int status = 0, pause_us = 100;
  while (!stopped()) {
    const pid_t done = waitpid(pid_, &status, WNOHANG);
    if (done == pid_) {
      pid_ = -1;
      drain_stderr();
      check_status(status);
      return;
    }
    if (done < 0 && errno != EINTR) {
      // The status was taken elsewhere (SIGCHLD is ignored, or another wait): it is unknown whether the data is
      // complete.
      pid_ = -1;
      fail(fmt::format("has ended, but its status is lost: {}", std::strerror(errno)));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(pause_us));
    pause_us = std::min(2 * pause_us, kLookMs * 1000);
    drain_stderr();
    check_limits();
  }
}

void Child::check_status(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status)) {
    fail(fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status))));
  }
  fail(fmt::format("ended with exit status {}", WEXITSTATUS(status)));
}

void Child::fail(const std::string& what) {
  kill_group();
  drain_stderr();
  while (!errors_.empty() && errors_.back() == '\n') errors_.pop_back();
  const size_t begin = errors_.size() > kStderrTail ? errors_.size() - kStderrTail : 0;
  const std::string said = errors_.empty() ? "nothing" : std::string("\n").append(errors_, begin);
  AB_THROW(Unavailable, "{}: the pipe command \"{}\" {} after {} bytes of output. It wrote to stderr: {}", path_,
           command_, what, bytes_, said);
}

}  // namespace anabranch::data
