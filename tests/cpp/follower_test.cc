// Predictors that follow a folder of checkpoints: each answer is of one version, the newest that is whole.
#include "engine/follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "checkpoint_folder.h"

namespace anabranch {
namespace {

namespace fs = std::filesystem;
using test::CheckpointFolder;
using testing::HasSubstr;

Tensor ids() {
  Tensor t(Shape{test::kKeys, 1}, DType::kInt64);
  for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data<int64_t>()[i] = i;
  return t;
}

// The version that an answer tells; -1 if it mixes several.
int64_t told(Predictor& predictor) {
  const Tensor& y = predictor.run(std::vector{ids()})[0];
  const float first = y.data<float>()[0];
  for (int64_t i = 0; i < y.numel(); ++i) {
    if (y.data<float>()[i] != first) return -1;
  }
  const auto version = static_cast<int64_t>(first) / 1001;
  return version * 1001 == static_cast<int64_t>(first) ? version : -1;
}

// A follower that looks at the folder when it is told to.
struct Followed {
  explicit Followed(const std::string& root, std::vector<Tensor> warm_up = {}, const std::string& share = {})
      : predictor(test::counting_model()),
        follower(root, predictor,
                 {.poll_s = 0,
                  .warm_up = std::move(warm_up),
                  .grace_s = 0,
                  .share = share,
                  .say = [this](const std::string& text) { said.push_back(text); }}) {}
  std::vector<std::string> said;
  Predictor predictor;
  Follower follower;
};

TEST(Follower, SharesTheRowsOfTables) {
  CheckpointFolder run("sharing");
  const std::string share = run.root + "-share";
  fs::remove_all(share);
  run.write(true);
  Followed one(run.root, {ids()}, share), other(run.root, {}, share);
  for (int64_t n = 2; n < 12; ++n) {
    run.write(n % 5 == 1);  // all rows change
    for (Followed* f : {&one, &other}) {
      EXPECT_TRUE(f->follower.poll());
      EXPECT_EQ(told(f->predictor), n);
      EXPECT_FALSE(f->follower.poll());
      EXPECT_EQ(told(f->predictor), n);
      EXPECT_EQ(f->follower.state().problem, "");
    }
  }
  EXPECT_TRUE(one.said.empty() && other.said.empty());
  EXPECT_GE(std::distance(fs::directory_iterator(share), {}), 2);
  Followed alone(run.root, {}, share);
  fs::remove_all(share);
  run.write();
  fs::remove_all(run.path(12));
  run.write(true);  // its changes lead nowhere
  EXPECT_TRUE(alone.follower.poll());
  EXPECT_EQ(told(alone.predictor), 13);
  EXPECT_THAT(alone.follower.state().problem, HasSubstr("table t is not shared"));
  EXPECT_THROW(Followed(run.root, {}, share + "/no/such"), Error);
}

TEST(Follower, TheNewestVersionAnswers) {
  CheckpointFolder run("newest");
  Followed f(run.root);
  EXPECT_EQ(told(f.predictor), 0);
  EXPECT_EQ(f.predictor.version(), 0);
  for (int64_t n = 1; n < 12; ++n) {
    run.write(n % 5 == 1);
    EXPECT_TRUE(f.follower.poll());
    EXPECT_FALSE(f.follower.poll());
    EXPECT_EQ(told(f.predictor), n);
    EXPECT_EQ(f.predictor.version(), n);
    EXPECT_EQ(told(*f.predictor.clone()), n);
  }
  const auto state = f.follower.state();
  EXPECT_EQ(state.version, 11);
  EXPECT_EQ(state.newest, 11);
  EXPECT_EQ(state.lag, 0);
  EXPECT_EQ(state.step, 110);
  EXPECT_EQ(state.trained_at, 12.5);
  Followed late(run.root);
  EXPECT_EQ(told(late.predictor), 11);
}

TEST(Follower, ChangesAreAppliedWithoutTheRowsBeforeThem) {
  CheckpointFolder run("changes");
  run.write(true);
  Followed f(run.root);
  fs::remove(run.path(1) + "/values.t");  // only a reload would need it
  run.write();
  run.write();
  EXPECT_TRUE(f.follower.poll());
  EXPECT_EQ(told(f.predictor), 3);
  Followed late(run.root);
  EXPECT_EQ(told(late.predictor), 0);
  EXPECT_THAT(late.follower.state().problem, HasSubstr("version 3 is not used"));
}

TEST(Follower, EveryAnswerIsOfOneVersion) {
  CheckpointFolder run("together");
  run.write(true);
  Predictor first(test::counting_model());
  Follower follower(run.root, first, {.poll_s = 0.001});
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0}, answers{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k) {
    threads.emplace_back([&, own = std::shared_ptr<Predictor>(first.clone())] {
      while (!over) {
        const int64_t version = told(*own);
        wrong += version < 1 || version != own->version();
        ++answers;
      }
    });
  }
  for (int64_t n = 2; n < 60; ++n) run.write(n % 7 == 0);
  for (int i = 0; i < 10000 && follower.state().version < 59; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  over = true;
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(answers, 10);
  EXPECT_EQ(follower.state().version, 59);
}

// Every damage of every file of the newest version leaves the old one in use, is said once, and is over when the file
// is whole again.
TEST(Follower, ADamagedVersionIsNotUsed) {
  CheckpointFolder run("damaged");
  run.write(true);
  run.write();
  Followed f(run.root);
  run.write(true);
  fs::rename(run.path(3), run.root + "/whole");
  for (const std::string name : {"status.json", "values", "values.t.changes", "values.t"}) {
    const std::string good = test::bytes_of(run.root + "/whole/" + name);
    std::string bent = good;
    bent[bent.size() / 2] ^= 1;
    for (const std::string& bad : {std::string(), good.substr(0, good.size() / 2), good + "x", bent}) {
      fs::copy(run.root + "/whole", run.path(3));
      test::put_bytes(run.path(3) + "/" + name, bad);
      f.said.clear();
      const bool is_read = name != "values.t";                       // after version 2, the changes are enough
      const bool is_listed = !is_read && bad.size() == good.size();  // its size and end are compared
      EXPECT_EQ(f.follower.poll(), is_listed) << name << " of " << bad.size() << " bytes";
      EXPECT_FALSE(f.follower.poll());
      EXPECT_EQ(told(f.predictor), is_listed ? 3 : 2);
      if (is_listed) return;  // the last one
      EXPECT_EQ(f.said.size(), 1u);
      EXPECT_THAT(f.follower.state().problem, HasSubstr(name));
      EXPECT_EQ(f.follower.state().lag, 1);
      fs::remove_all(run.path(3));
    }
  }
}

TEST(Follower, ALinkThatFollowsItselfIsRefused) {
  CheckpointFolder run("itself");
  run.write(true);
  Followed f(run.root);
  for (int n = 0; n < 3; ++n) run.write();
  fs::remove_all(run.path(2));
  fs::remove_all(run.path(3));
  fs::rename(run.path(4), run.path(3));  // it follows version 3
  EXPECT_FALSE(f.follower.poll());
  EXPECT_EQ(told(f.predictor), 1);
  EXPECT_THAT(f.follower.state().problem, HasSubstr("t.changes follows link 3"));
}

TEST(Follower, AnotherRunIsReadWhole) {
  CheckpointFolder run("another");
  run.write(true);
  Followed f(run.root);
  fs::remove_all(run.path(1));
  run.another_run();
  run.write(true);
  run.write();
  EXPECT_TRUE(f.follower.poll());
  EXPECT_EQ(told(f.predictor), 2);
}

TEST(Follower, APinGoesBack) {
  CheckpointFolder run("pin");
  for (int n = 0; n < 4; ++n) run.write(n == 0);
  Followed f(run.root);
  test::put_bytes(run.root + "/pinned.json", "{\"version\": 2}");
  EXPECT_TRUE(f.follower.poll());
  EXPECT_EQ(told(f.predictor), 2);
  EXPECT_FALSE(f.follower.poll());
  fs::remove(run.root + "/pinned.json");
  EXPECT_TRUE(f.follower.poll());
  EXPECT_EQ(told(f.predictor), 4);
  test::put_bytes(run.root + "/pinned.json", "{");
  EXPECT_FALSE(f.follower.poll());
  EXPECT_THAT(f.follower.state().problem, HasSubstr("pinned.json"));
}

TEST(Follower, AVersionMustPassTheWarmUp) {
  CheckpointFolder run("warm");
  run.write(true);
  Followed f(run.root, {ids()});
  for (const bool whole : {false, true}) {
    const int64_t bad = run.write(whole, std::numeric_limits<float>::quiet_NaN());
    EXPECT_FALSE(f.follower.poll());
    EXPECT_EQ(told(f.predictor), bad - 1);
    EXPECT_THAT(f.follower.state().problem, HasSubstr("NaN or infinity in output y"));
    const int64_t good = run.write(whole);
    EXPECT_TRUE(f.follower.poll());
    EXPECT_EQ(told(f.predictor), good);
    EXPECT_EQ(f.follower.state().problem, "");
  }
}

TEST(Follower, WrongOptionsChangeNothing) {
  CheckpointFolder run("options");
  run.write(true);
  Predictor predictor(test::counting_model());
  EXPECT_THROW(Follower(run.root, predictor, {.poll_s = -1}), Error);
  EXPECT_THROW(Follower(run.root, predictor, {.warm_up = {ids(), ids()}}), Error);
  EXPECT_EQ(told(predictor), 0);
}

}  // namespace
}  // namespace anabranch
