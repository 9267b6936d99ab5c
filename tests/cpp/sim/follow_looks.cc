// The answers of the followers of FollowRun, and whether they are what was trained.
#include <algorithm>
#include <filesystem>

#include "checkpoint_folder.h"
#include "sim/follow_parts.h"

namespace anabranch::ps::sim {

namespace fs = std::filesystem;

// A tool that copies: a file is there in part at first, files come in any order, and some are gone before.
void FollowRun::copy_some() {
  if (to_copy_.empty()) return;
  const auto [from, to] = to_copy_.front();
  if (!fs::exists(from)) {
    to_copy_.erase(to_copy_.begin());
    return;
  }
  fs::create_directories(fs::path(to).parent_path());
  const std::string bytes = test::bytes_of(from);
  if (!fs::exists(to) && world_.chance(30)) return test::put_bytes(to, bytes.substr(0, bytes.size() / 2));
  test::put_bytes(to, bytes);
  to_copy_.erase(to_copy_.begin());
}

void FollowRun::look() {
  copy_some();
  const auto which = static_cast<size_t>(world_.pick(0, static_cast<int>(followers_.size()) - 1));
  if (world_.chance(plan_.pins)) pin(*followers_[which]);
  look_at(*followers_[which]);
  ++looks_;
  world_.after(world_.within(1, 20 + looks_ / 4), [this] { look(); });
}

void FollowRun::pin(Followed& follower) {
  const std::string file = follower.root + "/pinned.json";
  if (fs::exists(file)) {
    fs::remove(file);
    return;
  }
  std::vector<int64_t> there;
  for (const auto& [number, saved] : saved_) {
    if (fs::exists(fmt::format("{}/checkpoint-{:06}", follower.root, number))) there.push_back(number);
  }
  if (there.empty()) return;
  const auto chosen = static_cast<size_t>(world_.pick(0, static_cast<int>(there.size()) - 1));
  test::put_bytes(file, fmt::format("{{\"version\": {}}}", there[chosen]));
}

void FollowRun::look_at(Followed& follower) {
  follower.follower.poll();
  const int64_t now = follower.follower.state().version;
  if (now < follower.version && !fs::exists(follower.root + "/pinned.json")) {
    fail(fmt::format("a follower goes back from version {} to {}", follower.version, now));
  }
  follower.version = now;
  check_answer(follower);
}

void FollowRun::check_answer(Followed& follower) {
  const std::vector<int64_t> keys = all_keys();
  Tensor ids(Shape{static_cast<int64_t>(keys.size()), 1}, DType::kInt64);
  std::copy(keys.begin(), keys.end(), ids.mutable_data<int64_t>());
  const auto& out = follower.predictor.run(std::vector{ids});
  ++answers_;
  const int64_t version = follower.predictor.version();
  static const Moment nothing;
  if (version != follower.version || (version && !saved_.count(version))) {
    return fail(fmt::format("an answer is of version {}, the follower has {}", version, follower.version));
  }
  const Moment& expected = version ? saved_.at(version).moment : nothing;
  if (out[1].data<float>()[0] != expected.dense) {
    return fail(fmt::format("version {} answers with the dense variable of update {}, not {}", version,
                            out[1].data<float>()[0], expected.dense));
  }
  const std::vector<float> none(GrownTable::kWidth, 0.0F);
  for (size_t i = 0; i < keys.size(); ++i) {
    const float* row = out[0].data<float>() + i * GrownTable::kWidth;
    const auto at = expected.rows.find(keys[i]);
    const std::vector<float>& trained = at == expected.rows.end() ? none : at->second;
    if (std::equal(trained.begin(), trained.end(), row)) continue;
    return fail(fmt::format("version {} answers {} for key {}, trained was {}", version,
                            fmt::join(row, row + GrownTable::kWidth, " "), keys[i], fmt::join(trained, " ")));
  }
}

}  // namespace anabranch::ps::sim
