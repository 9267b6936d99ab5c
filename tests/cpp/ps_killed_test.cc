// A server's files on a real disk: the process is killed at each of its system calls, and calls fail.
#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "ps_one_server.h"

namespace anabranch::ps {
namespace {

constexpr uint64_t kPushes = 5;  // a snapshot at the start and after the fourth one
constexpr int kNotTraced = 77;

// In the child: a server that takes pushes, and writes a byte into a pipe for each that it has acknowledged.
[[noreturn]] void serve(Durability durability, const std::string& folder, int pipe) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotTraced);
  std::raise(SIGSTOP);
  ToyStore store(2);
  Server server(options_of(durability, real_disk(), folder, 1), store);
  hello(server);
  for (uint64_t i = 1; i <= kPushes; ++i) {
    if (!push(server, i) || ::write(pipe, "+", 1) != 1) _exit(1);
  }
  _exit(0);
}

struct Life {
  bool traced = true, killed = false;
  uint64_t acknowledged = 0;
};

// Kills the server when it starts its n-th system call.
Life live(Durability durability, const std::string& folder, int n) {
  int pipe[2];
  if (::pipe(pipe) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) serve(durability, folder, pipe[1]);
  close(pipe[1]);
  Life out;
  int status = 0;
  waitpid(child, &status, 0);
  out.traced = WIFSTOPPED(status);
  if (out.traced) ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
  const int last = 2 * n - 1;  // a call stops the child twice
  for (int stops = 0; out.traced && stops < last;) {
    if (ptrace(PTRACE_SYSCALL, child, nullptr, nullptr) != 0 || waitpid(child, &status, 0) != child) break;
    if (WIFEXITED(status) || WIFSIGNALED(status)) break;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) continue;
    out.killed = ++stops == last;
  }
  if (out.killed) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
  } else if (out.traced) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  char byte = 0;
  while (::read(pipe[0], &byte, 1) == 1) ++out.acknowledged;
  close(pipe[0]);
  return out;
}

TEST(PsKilled, AtEachSystemCall) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer makes its own system calls, and lets no child of a fork work";
#endif
  int deaths = 0;
  for (int n = 1;; ++n) {
    const Folder folder;
    const Life life = live(Durability::kFlushed, folder.str(), n);
    if (!life.traced) GTEST_SKIP() << "this system lets no process be traced";
    if (!life.killed) break;
    ++deaths;
    ToyStore store(2);
    Server server(options_of(Durability::kFlushed, real_disk(), folder.str(), 2), store);
    EXPECT_GE(value(store), static_cast<float>(life.acknowledged)) << "killed at call " << n;
    EXPECT_LE(value(store), static_cast<float>(life.acknowledged + 1)) << "killed at call " << n;
    EXPECT_EQ(value(store, 0), value(store, 1));
    hello(server, life.acknowledged);
    EXPECT_EQ(server.stats().lost, 0);
  }
  std::printf("killed at %d system calls\n", deaths);
  EXPECT_GT(deaths, 60);
}

// The real disk, on which flushing a file fails when it is told to.
class FailingDisk final : public Disk {
 public:
  std::unique_ptr<DiskLock> lock(const std::string&, const std::string&) override {
    return std::make_unique<DiskLock>();  // the next server comes while this one is still there
  }
  bool fails = false;
  std::unique_ptr<DiskFile> create(const std::string& path) override {
    return std::make_unique<File>(*this, path, real_disk().create(path));
  }
  bool exists(const std::string& path) const override { return real_disk().exists(path); }
  std::unique_ptr<DiskSource> open(const std::string& path) const override { return real_disk().open(path); }
  std::vector<std::string> list(const std::string& folder) const override { return real_disk().list(folder); }
  void make_folder(const std::string& path) override { real_disk().make_folder(path); }
  void rename(const std::string& from, const std::string& to) override { real_disk().rename(from, to); }
  void remove(const std::string& path) override { real_disk().remove(path); }
  void sync_folder(const std::string& path) override { real_disk().sync_folder(path); }

 private:
  class File final : public DiskFile {
   public:
    File(FailingDisk& disk, std::string path, std::unique_ptr<DiskFile> file)
        : disk_(disk), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::string_view data) override { file_->write(data); }
    void sync() override {
      AB_CHECK(!disk_.fails, Unavailable, "cannot flush {}: Input/output error", path_);
      file_->sync();
    }

   private:
    FailingDisk& disk_;
    const std::string path_;
    const std::unique_ptr<DiskFile> file_;
  };
};

// A push that could not be flushed may be gone: it is refused by name, and no push is taken until a snapshot succeeds.
TEST(PsKilled, AFlushThatFails) {
  const Folder folder;
  FailingDisk disk;
  ToyStore store(2);
  std::vector<std::string> said;
  ServerOptions options = options_of(Durability::kFlushed, disk, folder.str(), 1);
  options.history.tell = [&](const std::string& what) { said.push_back(what); };
  Server server(options, store);
  hello(server);
  for (uint64_t i = 1; i <= 6; ++i) ASSERT_TRUE(push(server, i));
  const uint64_t whole = real_disk().list(folder.str()).size();
  disk.fails = true;
  const MessageRef refused = pushed(server, 7);
  ASSERT_TRUE(refused->header().error);
  EXPECT_NE(refused->text(0).find("cannot flush " + folder.str() + "/journal-"), std::string::npos) << refused->text(0);
  for (uint64_t i = 8; i <= 12; ++i) EXPECT_FALSE(push(server, i));
  EXPECT_GT(server.stats().failed_snapshots, 0);
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.back().find("toy:0 has no snapshot"), std::string::npos) << said.back();
  EXPECT_GE(real_disk().list(folder.str()).size(), whole);
  {
    ToyStore next(2);  // the older snapshots and the journal up to there are whole
    const Server again(options_of(Durability::kFlushed, real_disk(), folder.str(), 2), next);
    EXPECT_GE(value(next), 6);
    EXPECT_LE(value(next), value(store));
  }
}

// The limit on the size of files makes the system refuse writes as a full disk does.
TEST(PsKilled, AFullDiskIsNamed) {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    ToyStore store(2);
    Server server(options_of(Durability::kJournal, real_disk(), folder.str(), 1), store);
    hello(server);
    for (uint64_t i = 1; i <= 6; ++i) {
      if (!push(server, i)) _exit(1);
    }
    const rlimit none{0, 0};
    if (setrlimit(RLIMIT_FSIZE, &none) != 0) _exit(2);
    const MessageRef refused = pushed(server, 7);
    const bool named = refused->header().error == 1 + static_cast<uint8_t>(ErrorKind::kResourceExhausted) &&
                       refused->text(0).find("cannot write " + folder.str() + "/journal-") != std::string::npos;
    if (!named) _exit(3);
    for (uint64_t i = 8; i <= 12; ++i) {
      if (push(server, i)) _exit(4);
    }
    _exit(value(store) == 6 && server.stats().failed_snapshots > 0 ? 0 : 5);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  ToyStore store(2);
  const Server server(options_of(Durability::kJournal, real_disk(), folder.str(), 2), store);
  EXPECT_EQ(value(store), 6);
}

}  // namespace
}  // namespace anabranch::ps
