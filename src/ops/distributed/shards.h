// Remote variables that an op names by its attributes; resolved on the first run, which waits for the servers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "opdef/completion.h"
#include "ops/distributed/declare.h"
#include "ps/trainers.h"

namespace anabranch::distributed {

class Shards {
 public:
  // `parameter`: of which they are shards, or shards of its gradient; empty: none, or several.
  Shards(int trainer, std::vector<std::string> endpoints, std::vector<std::string> names, std::string parameter = {});
  ~Shards();
  Shards(const Shards&) = delete;

  // Connects at the first call.
  ps::Client& client();
  const std::vector<ps::Remote>& remotes() const { return remotes_; }
  // Requests them with each exchange of a step from now on.
  void subscribe();

 private:
  const int trainer_;
  const std::vector<std::string> endpoints_, names_;
  const std::string parameter_;
  std::shared_ptr<ps::Client> client_;
  std::vector<ps::Remote> remotes_;
  bool subscribed_ = false;
};

// The parameter that a send or receive works for; empty: none, or several.
std::string parameter_of(const KernelArgs& op);
// The names that an attribute gives, or the names of the arguments.
std::vector<std::string> names_or(const KernelArgs& op, const char* attr, const std::vector<std::string>& args);
// Takes the end of a node: called with an error, the node fails, without one it is done.
ps::Client::Done end_of(KernelContext& c);
// Collects the answers of several servers for one node: counts them, keeps the first error, and completes the node with
// the last one.
class Answers {
 public:
  Answers(int count, Completion completion, std::function<void()> when_all = {});
  // `use` reads the answer; an exception from it becomes the error of the node.
  void take(const rpc::MessageRef& answer, const std::function<void(const rpc::Message&)>& use);

 private:
  std::atomic<int> left_;
  std::mutex mutex_;
  std::exception_ptr error_;
  Completion completion_;
  std::function<void()> when_all_;
};

}  // namespace anabranch::distributed
