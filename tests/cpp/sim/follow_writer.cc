// Checkpoints of the servers of FollowRun, written as anabranch.checkpoints.servers writes them.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <random>

#include "checkpoint_folder.h"
#include "ps/link_copy.h"
#include "sim/follow_parts.h"

namespace anabranch::ps::sim {

namespace fs = std::filesystem;

// A server that was killed since then has dropped the save, which fails later.
FollowRun::Moment FollowRun::moment_of_servers(float dense) {
  Moment all;
  all.dense = dense;
  for (const auto& s : servers_) {
    if (!s->server()) continue;
    all.rows.insert(s->store->at_begin().rows.begin(), s->store->at_begin().rows.end());
    if (plan_.mode != Mode::kSync || s->store->at_begin().dense == dense) continue;
    all.wrong = fmt::format("the rows of {} are of update {}, the dense variable is of {}", s->endpoint(),
                            s->store->at_begin().dense, dense);
  }
  return all;
}

float FollowRun::pull_dense() {
  float out = -1;
  writer_->pull(writer_->remote(servers_[0]->endpoint(), "w"), [&](const MessageRef& m) {
    if (!m->header().error) out = Message::tensor(m, 0).data<float>()[0];
  });
  return out;
}

void FollowRun::save() {
  const Saved* before = nullptr;
  int64_t number = 1;
  saving_ = true;
  try {
    const std::vector<uint64_t> since = recorded_since(tables_);
    for (auto at = saved_.rbegin(); at != saved_.rend() && !before; ++at) {
      const bool same = std::all_of(since.begin(), since.end(), [&](uint64_t s) { return s == at->second.since(); });
      if (same && fs::exists(path("run", at->first))) before = &at->second;
    }
    if (!saved_.empty()) number = saved_.rbegin()->first + 1;
    write(number, before, !before || world_.chance(plan_.wholes));
  } catch (const Error&) {  // a server was killed meanwhile, and has dropped the save
    fs::remove_all(folder_ + "/run/.writing");
  }
  saving_ = false;
}

void FollowRun::write(int64_t number, const Saved* before, bool whole) {
  Saved made;
  made.whole = whole;
  made.place = {{plan_.seed, 0}, number, -1, {}, 0};
  if (before) {
    made.place = before->place;
    made.place.number = number;
    made.place.previous = before->place.number;
    made.place.previous_sums = before->sums;
  } else {
    made.place.run[1] = static_cast<uint64_t>(number);
  }
  ServerCut cut(tables_, whole);
  made.moment = moment_of_servers(pull_dense());
  const std::string writing = folder_ + "/run/.writing", values = writing + "/values";
  fs::create_directories(writing);
  const bool gives_up = world_.chance(plan_.given_up);
  {
    std::optional<io::AtomicFile> all, some;
    if (whole) all.emplace(values + ".t");
    if (before) some.emplace(values + ".t.changes");
    made.sums = cut.write("t", made.place, all ? &*all : nullptr, some ? &*some : nullptr);
    if (all) all->commit();
    if (some) some->commit();
  }
  if (gives_up) {
    if (planted_ == FollowDefect::kChangesAreDropped && before) cut.end(before->since());
    fs::remove_all(writing);
    return;
  }
  test::write_version(writing, number, made.place.run, made.sums, filled(made.moment.dense, 1));
  if (!made.moment.wrong.empty()) fail(made.moment.wrong);
  saved_[number] = made;
  fs::rename(writing, path("run", number));
  changes_ += !whole;
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : fs::directory_iterator(path("run", number))) {
    files.emplace_back(entry.path(), path("copies", number) + "/" + entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  std::shuffle(files.begin(), files.end(), std::mt19937_64(world_.draw()));
  to_copy_.insert(to_copy_.end(), files.begin(), files.end());
  if (world_.chance(plan_.given_up)) return;  // killed before the servers know of it
  cut.end(made.since());
  if (world_.chance(30)) remove_old();
}

// All before the last one that has all rows, as anabranch.Checkpoints(keep=) does.
void FollowRun::remove_old() {
  int64_t needed = saved_.rbegin()->first;
  while (!saved_.at(needed).whole) needed = saved_.at(needed).place.previous;
  for (const auto& [number, saved] : saved_) {
    if (number < needed) fs::remove_all(path("run", number));
  }
}

}  // namespace anabranch::ps::sim
