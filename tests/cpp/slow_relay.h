// A port of this machine that passes bytes on to another one, and begins late, as a busy machine does.
#pragma once
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace anabranch::ps {

class SlowRelay {
 public:
  SlowRelay(int port, std::chrono::milliseconds late) : to_(port), late_(late) {
    const sockaddr_in any = address(0);
    bind(listener_, reinterpret_cast<const sockaddr*>(&any), sizeof(any));
    listen(listener_, 16);
    thread_ = std::thread([this] { pass_on(accept(listener_, nullptr, nullptr)); });
  }
  ~SlowRelay() {
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  SlowRelay(const SlowRelay&) = delete;
  std::string endpoint() const {
    sockaddr_in own{};
    socklen_t size = sizeof(own);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&own), &size);
    return "127.0.0.1:" + std::to_string(ntohs(own.sin_port));
  }

 private:
  static sockaddr_in address(int port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    out.sin_port = htons(static_cast<uint16_t>(port));
    return out;
  }
  void pass_on(int from) const {
    if (from < 0) return;
    std::this_thread::sleep_for(late_);
    const int to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in there = address(to_);
    if (connect(to, reinterpret_cast<const sockaddr*>(&there), sizeof(there)) == 0) {
      while (one_way(from, to)) {
      }
    }
    close(to);
    close(from);
  }
  static bool one_way(int a, int b) {
    pollfd both[] = {{a, POLLIN, 0}, {b, POLLIN, 0}};
    poll(both, 2, -1);
    char bytes[4096];
    for (int i = 0; i < 2; ++i) {
      if (both[i].revents == 0) continue;
      const ssize_t n = read(both[i].fd, bytes, sizeof(bytes));
      if (n <= 0 || send(both[1 - i].fd, bytes, static_cast<size_t>(n), MSG_NOSIGNAL) != n) return false;
    }
    return true;
  }

  const int to_;
  const std::chrono::milliseconds late_;
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread thread_;
};

}  // namespace anabranch::ps
