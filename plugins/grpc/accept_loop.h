// Accepts the connections of a listener and passes them to gRPC. A server that has run out of file descriptors refuses
// connections, reserves some descriptors for its files, and accepts again as soon as there are enough.
#pragma once
#include <grpcpp/server_builder.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "address.h"

namespace anabranch::rpc {

class AcceptLoop {
 public:
  using Acceptor = grpc::experimental::ExternalConnectionAcceptor;
  using Tell = std::function<void(const std::string&)>;
  AcceptLoop(std::vector<Socket> sockets, std::string endpoint, std::unique_ptr<Acceptor> grpc, Tell tell);
  ~AcceptLoop();
  AcceptLoop(const AcceptLoop&) = delete;
  void stop();  // accepts no more
  void cut();   // after that: ends all connections, as if the callers had gone

 private:
  struct Connection {
    ino_t file;  // a descriptor belongs to another file when it was closed and given out again
    std::string from;
  };

  void work();
  void accept_at(const Socket& socket);
  void refuse_one(const Socket& socket);
  bool may_accept(int fd, const std::string& from);
  void refuse(const std::string& why);

  const std::vector<Socket> sockets_;
  const std::string endpoint_;
  const std::unique_ptr<Acceptor> grpc_;
  const Tell tell_;
  Socket reserve_, stop_;  // reserve_ is closed to accept a connection that is refused
  std::map<int, Connection> connections_;
  std::chrono::steady_clock::time_point quiet_until_{};  // after a line in the log
  std::thread thread_;
};

}  // namespace anabranch::rpc
