// Keeps a predictor, and its later clones, at the newest version in a folder of checkpoints. Each run uses the values
// of one version; Predictor::version() returns its number. If a version is incomplete, damaged, or of another model,
// the old one stays in use. Any thread may call the functions.
#pragma once
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/followed_model.h"
#include "engine/predictor.h"
#include "engine/version_folder.h"
#include "sparse/shared_tables.h"
#include "sparse/table_chain.h"

namespace anabranch {

struct FollowOptions {
  // Seconds between two checks of the folder; 0: only poll() checks it.
  double poll_s = 0.1;
  // Inputs on which each version is run before it is used; empty: none. A version whose run fails, or gives NaN or
  // infinity, is not used.
  std::vector<Tensor> warm_up = {};
  // Seconds that a version may stay incomplete before it is reported as a problem.
  double grace_s = 5;
  // Folder on a disk or in memory (/dev/shm) with which the processes of this machine share the rows of tables. Empty:
  // each process has its own rows.
  std::string share = {};
  // Called once for each problem. Empty: each is printed as a line on stderr.
  std::function<void(const std::string&)> say = {};
};

class Follower {
 public:
  // Checks the folder once, and then follows it in a thread. The folder need not exist yet. InvalidArgument: the
  // options are wrong, or the model cannot be run on `warm_up`. Unavailable: the folder `share` cannot be used.
  Follower(std::string root, Predictor& predictor, FollowOptions options = {});
  ~Follower();  // the predictors keep their version
  Follower(const Follower&) = delete;

  // Checks the folder once. Returns true if the version of the model has changed.
  bool poll();

  struct State {
    int64_t version = 0;    // of the model; 0: the values of the model's files
    int64_t step = 0;       // at which it was saved
    double trained_at = 0;  // seconds since 1970; 0: unknown
    int64_t newest = 0;     // version in the folder; 0: there is none
    int64_t lag = 0;        // number of versions in the folder that are newer than the model's
    std::string problem;    // why a version is not used; empty: there is none
  };
  State state() const;

 private:
  using Chains = std::map<std::string, std::shared_ptr<sparse::TableChain>>;
  struct Failure {
    std::string signature;
    double first;
    std::string why;
  };

  bool try_version(int64_t number);
  void go_to(int64_t number);
  void read_dense(Scope& fresh, int64_t number, const VersionStatus& status) const;
  // Of the changes since the model's version; empty if there are none, or another run wrote them.
  Chains changes_to(int64_t number, const VersionStatus& status) const;
  Chains read_tables(Scope& fresh, int64_t number, const VersionStatus& status);
  std::shared_ptr<sparse::TableChain> whole_chain(int64_t number, const std::string& table,
                                                  const std::string& run) const;
  std::shared_ptr<sparse::GrowableTable> table(const std::string& name) const;
  void try_out(const std::shared_ptr<Scope>& fresh) const;
  void remember(const VersionStatus& status, Chains chains);
  // Lets its tables share more rows, if they can.
  void renew();
  std::string overdue() const;
  std::string not_shared() const;
  void report(const std::string& problem);
  void follow();

  const VersionFolder folder_;
  const FollowOptions options_;
  const Model model_;
  const int threads_;
  const std::shared_ptr<FollowedModel> followed_;
  std::vector<std::string> dense_, tables_;
  std::optional<sparse::SharedTables> shared_;

  std::mutex one_poll_;  // guards:
  Chains chains_;        // table -> the chain whose last link it has
  std::string run_;
  std::map<int64_t, Failure> failed_;
  std::vector<std::string> told_;

  mutable std::mutex state_lock_;
  State state_;

  std::mutex stop_lock_;
  std::condition_variable stopping_;
  bool stopped_ = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace anabranch
