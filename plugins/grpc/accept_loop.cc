#include "accept_loop.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace anabranch::rpc {
namespace {

constexpr std::chrono::seconds kQuiet{60};
constexpr int kPauseMs = 20;         // when not even the reserve helps
constexpr int kReserved = 64;        // descriptors that connections do not get
constexpr int kMinConnections = 16;  // of one address, for all limits

int limit() {
  rlimit both{};
  getrlimit(RLIMIT_NOFILE, &both);
  return static_cast<int>(std::min<rlim_t>(both.rlim_cur, 1 << 20));
}

int open_null() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }

int take(const Socket& socket, sockaddr_storage* from) {
  socklen_t size = sizeof(*from);
  return accept4(socket.fd(), reinterpret_cast<sockaddr*>(from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

std::string name_of(const sockaddr_storage& from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* address = nullptr;
  if (from.ss_family == AF_INET) address = &reinterpret_cast<const sockaddr_in&>(from).sin_addr;
  if (from.ss_family == AF_INET6) address = &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr;
  if (!address || !inet_ntop(from.ss_family, address, text.data(), text.size())) return "this machine";
  return text.data();
}

ino_t file_of(int fd) {
  struct stat s {};
  return fstat(fd, &s) == 0 ? s.st_ino : 0;
}

}  // namespace

AcceptLoop::AcceptLoop(std::vector<Socket> sockets, std::string endpoint, std::unique_ptr<Acceptor> grpc, Tell tell)
    : sockets_(std::move(sockets)),
      endpoint_(std::move(endpoint)),
      grpc_(std::move(grpc)),
      tell_(std::move(tell)),
      reserve_(open_null()),
      stop_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([this] { work(); });
}

AcceptLoop::~AcceptLoop() { stop(); }

void AcceptLoop::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_.fd(), 1);
  thread_.join();
}

void AcceptLoop::cut() {
  for (const auto& [fd, accepted] : connections_) {
    if (file_of(fd) == accepted.file) shutdown(fd, SHUT_RDWR);
  }
}

void AcceptLoop::work() {
  std::vector<pollfd> watched{{stop_.fd(), POLLIN, 0}};
  for (const Socket& s : sockets_) watched.push_back({s.fd(), POLLIN, 0});
  while (true) {
    if (poll(watched.data(), watched.size(), -1) < 0) {
      if (errno != EINTR) return;
      continue;
    }
    if (watched[0].revents) return;
    for (size_t i = 0; i < sockets_.size(); ++i) {
      if (watched[i + 1].revents) accept_at(sockets_[i]);
    }
  }
}

void AcceptLoop::accept_at(const Socket& socket) {
  sockaddr_storage from{};
  const int fd = take(socket, &from);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) refuse_one(socket);
    return;  // else the caller has gone
  }
  Socket accepted(fd);
  if (!may_accept(fd, name_of(from))) return;
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  connections_[fd] = {file_of(fd), name_of(from)};
  Acceptor::NewConnectionParameters given;
  given.listener_fd = socket.fd();
  given.fd = accepted.release();
  grpc_->HandleNewConnection(&given);
}

// The caller is notified at once and tries again; in the queue of the socket it would wait.
void AcceptLoop::refuse_one(const Socket& socket) {
  refuse("it has no descriptor left");
  reserve_ = Socket();
  sockaddr_storage from{};
  const bool refused = Socket(take(socket, &from)).fd() >= 0;  // closed at once: its descriptor is the next reserve
  reserve_ = Socket(open_null());
  if (!refused) poll(nullptr, 0, kPauseMs);
}

bool AcceptLoop::may_accept(int fd, const std::string& from) {
  const int most = limit();
  if (fd >= most - std::min(most / 8, kReserved)) {  // the lowest free number is given out
    refuse("it keeps its last descriptors for files");
    return false;
  }
  const auto count = [&] {
    return std::count_if(connections_.begin(), connections_.end(),
                         [&](const auto& g) { return g.second.from == from; });
  };
  const int peer_limit = std::max(kMinConnections, most / 2);
  if (static_cast<int>(connections_.size()) < peer_limit || count() < peer_limit) return true;
  std::erase_if(connections_, [](const auto& g) { return file_of(g.first) != g.second.file; });
  if (count() < peer_limit) return true;
  refuse(from + " has " + std::to_string(peer_limit) + " of them");
  return false;
}

void AcceptLoop::refuse(const std::string& why) {
  const auto now = std::chrono::steady_clock::now();
  if (now < quiet_until_) return;
  quiet_until_ = now + kQuiet;
  tell_("the server at " + endpoint_ + " refuses connections: " + why + "; the limit is " + std::to_string(limit()) +
        " (ulimit -n)");
}

}  // namespace anabranch::rpc
