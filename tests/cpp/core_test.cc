#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "base/threads.h"
#include "core/scope.h"

namespace anabranch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <class Fn> ErrorKind kind_of(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error was raised";
  return ErrorKind::kInternal;
}

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  Tensor t(shape, DType::kFloat32);
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  return t;
}

std::vector<float> values(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.numel()}; }

TEST(Shape, CountsElements) {
  EXPECT_EQ(Shape({2, 3, 4}).numel(), 24);
  EXPECT_EQ(Shape({2, 3, 4}).numel(1, 3), 12);
  EXPECT_EQ(Shape({2, kUnknown}).numel(), kUnknown);
  EXPECT_EQ(Shape({0, int64_t{1} << 62}).numel(), 0);
  EXPECT_EQ(Shape({kUnknown, 784}).str(), "[-1, 784]");
}

TEST(Shape, RefusesWhatNoTensorHas) {
  EXPECT_EQ(kind_of([] { Shape({-2}); }), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind_of([] { Shape(std::vector<int64_t>(kMaxRank + 1, 1)); }), ErrorKind::kInvalidArgument);
  EXPECT_EQ(kind_of([] { Shape({int64_t{1} << 40, int64_t{1} << 40}).numel(); }), ErrorKind::kResourceExhausted);
  EXPECT_EQ(kind_of([] { normal_axis(3, 3, "axis"); }), ErrorKind::kInvalidArgument);
  EXPECT_EQ(normal_axis(-1, 3, "axis"), 2);
}

TEST(Shape, UnknownExtentsAreCompatibleWithAny) {
  EXPECT_TRUE(compatible(Shape({kUnknown, 3}), Shape({5, 3})));
  EXPECT_FALSE(compatible(Shape({kUnknown, 3}), Shape({5, 4})));
  EXPECT_FALSE(compatible(Shape({3}), Shape({3, 1})));
}

TEST(LoD, LengthsAndOffsetsAreTwoFormsOfOne) {
  const LoD lod = lod_from_lengths({{2, 1}, {3, 1, 2}});
  EXPECT_THAT(lod, ElementsAre(ElementsAre(0, 2, 3), ElementsAre(0, 3, 4, 6)));
  EXPECT_THAT(lod_to_lengths(lod), ElementsAre(ElementsAre(2, 1), ElementsAre(3, 1, 2)));
  check_lod(lod, 6);
}

TEST(LoD, RefusesBrokenOffsets) {
  for (const LoD& broken : {LoD{{0}}, LoD{{1, 2}}, LoD{{0, 3, 2}}, LoD{{0, 2}, {0, 3}}, LoD{{0, 5}}}) {
    EXPECT_EQ(kind_of([&] { check_lod(broken, 6); }), ErrorKind::kInvalidArgument) << lod_str(broken);
  }
}

TEST(LoD, CutsAndJoinsBySequence) {
  const LoD lod = lod_from_lengths({{2, 1}, {3, 1, 2}});
  int64_t first = 0, last = 0;
  LoD head = slice_lod(lod, 0, 1, &first, &last);
  EXPECT_EQ(first, 0);
  EXPECT_EQ(last, 4);
  const LoD tail = slice_lod(lod, 1, 2, &first, &last);
  EXPECT_EQ(first, 4);
  EXPECT_EQ(last, 6);
  EXPECT_THAT(tail, ElementsAre(ElementsAre(0, 1), ElementsAre(0, 2)));
  append_lod(&head, tail);
  EXPECT_EQ(head, lod);
}

TEST(Tensor, KeepsItsMemoryWhenItShrinks) {
  Tensor t(Shape{4, 4}, DType::kFloat32);
  const void* before = t.raw();
  t.resize(Shape{2, 4}, DType::kFloat32);
  EXPECT_EQ(t.raw(), before);
  t.resize(Shape{2, 4}, DType::kFloat64);
  EXPECT_EQ(t.raw(), before);
  t.resize(Shape{9, 4}, DType::kFloat64);
  EXPECT_EQ(t.bytes(), 9u * 4u * 8u);
}

TEST(Tensor, RefusesTheWrongType) {
  const Tensor t(Shape{1}, DType::kInt64);
  EXPECT_EQ(kind_of([&] { t.data<float>(); }), ErrorKind::kInvalidArgument);
}

TEST(Tensor, AnEmptyOneIsInitialized) {
  EXPECT_FALSE(Tensor().initialized());
  EXPECT_TRUE(Tensor(Shape{0, 3}, DType::kFloat32).initialized());
}

TEST(Tensor, CopiesThroughRowStrides) {
  Tensor record = floats({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Tensor view;
  view.view(record.mutable_data<float>() + 1, Shape{3, 2}, DType::kFloat32, nullptr, 4);
  EXPECT_FALSE(view.contiguous());
  Tensor copy;
  copy.copy_from(view);
  EXPECT_THAT(values(copy), ElementsAre(2, 3, 6, 7, 10, 11));
  view.copy_from(floats({3, 2}, {-1, -2, -3, -4, -5, -6}));
  EXPECT_THAT(values(record), ElementsAre(1, -1, -2, 4, 5, -3, -4, 8, 9, -5, -6, 12));
}

TEST(Tensor, RowRangesShareMemory) {
  Tensor t = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  Tensor middle = t.row_range(1, 2);
  middle.mutable_data<float>()[0] = 30;
  EXPECT_EQ(t.data<float>()[2], 30);
  EXPECT_EQ(kind_of([&] { t.row_range(2, 4); }), ErrorKind::kInvalidArgument);
}

TEST(Tensor, ChecksTheLoDAgainstItsRows) {
  Tensor t(Shape{6, 1}, DType::kFloat32);
  t.set_lod(LoD{{0, 2, 6}});
  EXPECT_EQ(t.lod().size(), 1u);
  EXPECT_EQ(kind_of([&] { t.set_lod(LoD{{0, 2, 5}}); }), ErrorKind::kInvalidArgument);
}

TEST(Tensor, BuffersAreCountedWhileTheyLive) {
  const int64_t before = resident_buffer_bytes();
  {
    const Tensor t(Shape{1000}, DType::kFloat32);
    const Tensor same = t;  // NOLINT(performance-unnecessary-copy-initialization): that it shares is the test
    EXPECT_GE(resident_buffer_bytes() - before, 4000);
    EXPECT_LT(resident_buffer_bytes() - before, 8000);
  }
  EXPECT_EQ(resident_buffer_bytes(), before);
}

TEST(SelectedRows, MergesEqualIdsInOrder) {
  SelectedRows in, out;
  in.rows = {7, 2, 7};
  in.height = 10;
  in.value = floats({3, 2}, {1, 2, 3, 4, 10, 20});
  merge_rows(in, &out);
  EXPECT_THAT(out.rows, ElementsAre(2, 7));
  EXPECT_EQ(out.height, 10);
  EXPECT_THAT(values(out.value), ElementsAre(3, 4, 11, 22));
}

// Ids in every range that is sorted in its own way, against sums taken one id after another.
TEST(SelectedRows, MergesManyIds) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  SelectedRows in, out;
  for (const int64_t distinct : {int64_t{1}, int64_t{7}, int64_t{3000}, int64_t{1} << 40, kMost}) {
    for (const int64_t n : {0, 1, 511, 512, 5000}) {
      in.rows.clear();
      in.value.resize(Shape{n, 2}, DType::kFloat32);
      std::map<int64_t, std::pair<float, float>> sums;
      uint64_t random = 1;
      for (int64_t i = 0; i < n; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const auto id =
            distinct == kMost ? static_cast<int64_t>(random) : static_cast<int64_t>(random >> 20) % distinct;
        in.rows.push_back(id);
        float* value = in.value.mutable_data<float>() + 2 * i;
        value[0] = 1.0f / static_cast<float>(i + 1);
        value[1] = static_cast<float>(i);
        const auto [at, first] = sums.try_emplace(id, value[0], value[1]);
        if (!first) at->second = {at->second.first + value[0], at->second.second + value[1]};
      }
      merge_rows(in, &out);
      ASSERT_EQ(out.rows.size(), sums.size());
      size_t k = 0;
      for (const auto& [id, sum] : sums) {
        ASSERT_EQ(out.rows[k], id);
        ASSERT_EQ(out.value.data<float>()[2 * k], sum.first);
        ASSERT_EQ(out.value.data<float>()[2 * k + 1], sum.second);
        ++k;
      }
    }
  }
}

TEST(Value, HoldsOneKindAtATime) {
  Value v;
  EXPECT_TRUE(v.empty());
  EXPECT_EQ(kind_of([&] { v.tensor(); }), ErrorKind::kInvalidArgument);
  v.as<Tensor>() = floats({1}, {3});
  EXPECT_TRUE(v.initialized());
  EXPECT_EQ(kind_of([&] { v.rows(); }), ErrorKind::kInvalidArgument);
  v.as<TensorArray>().resize(2);
  EXPECT_FALSE(v.is<Tensor>());
}

TEST(Value, CopiesAreDeep) {
  Value a, b;
  a.as<Tensor>() = floats({1}, {3});
  b.copy_from(a);
  a.as<Tensor>().mutable_data<float>()[0] = 4;
  EXPECT_EQ(b.tensor().data<float>()[0], 3);
}

TEST(Scope, SeesItsParentsNames) {
  const auto root = Scope::make();
  const auto kid = root->new_scope();
  Value* w = root->var("w");
  EXPECT_EQ(kid->find_var("w"), w);
  EXPECT_EQ(kid->find_local("w"), nullptr);
  EXPECT_NE(kid->var("w"), w);
  EXPECT_EQ(root->find_var("x"), nullptr);
  EXPECT_EQ(kid->parent(), root);
}

TEST(Scope, ValuesDoNotMoveAndIdsAreNotReused) {
  auto scope = Scope::make();
  Value* first = scope->var("v0");
  for (int i = 1; i < 1000; ++i) scope->var(fmt::format("v{}", i));
  EXPECT_EQ(scope->var("v0"), first);
  const uint64_t id = scope->id();
  scope = Scope::make();
  EXPECT_NE(scope->id(), id);
}

TEST(Scope, ChildrenKeepTheirParents) {
  auto root = Scope::make();
  Value* w = root->var("w");
  const auto kid = root->new_scope()->new_scope();
  const std::weak_ptr<Scope> gone = root;
  root.reset();
  EXPECT_EQ(kid->find_var("w"), w);
  EXPECT_EQ(&kid->gate(), w->gate().get());
  EXPECT_FALSE(gone.expired());
}

TEST(Scope, VersionsOfNamesRise) {
  const auto root = Scope::make();
  const auto kid = root->new_scope();
  uint64_t last = kid->names_version();
  const auto risen = [&] { return std::exchange(last, kid->names_version()) < last; };
  root->var("w");
  EXPECT_TRUE(risen());
  kid->var("w");
  EXPECT_TRUE(risen());
  root->var("w");
  EXPECT_FALSE(kid->find_var("absent"));
  kid->erase("absent");
  EXPECT_FALSE(risen());
  root->erase("w");
  EXPECT_TRUE(risen());
  const uint64_t of_root = root->names_version();
  kid->erase("w");
  EXPECT_EQ(root->names_version(), of_root) << "a child's names are not its parent's";
}

// Names come and go in some threads while others look them up; what was found stays whole.
TEST(Scope, AnyThreadMayLookUpAddAndErase) {
  const auto root = Scope::make();
  const auto kid = root->new_scope();
  root->var("kept")->as<Tensor>() = floats({1}, {7});
  std::atomic<bool> stop{false};
  std::atomic<int64_t> found{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5000; ++i) {
        const std::string name = fmt::format("v{}_{}", t, i % 100);
        kid->share(name)->as<Tensor>() = floats({1}, {static_cast<float>(t)});
        kid->erase(name);
      }
      stop = true;
    });
  }
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        if (kid->find_shared(fmt::format("v{}_7", t))) ++found;
        ASSERT_EQ(kid->find_shared("kept")->tensor().data<float>()[0], 7);
        kid->local_names();
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_TRUE(kid->local_names().empty());
}

// Runs are inside together; a change is alone, and is not kept waiting by runs that come one after another.
TEST(RunGate, ChangesAreAlone) {
  RunGate gate;
  std::atomic<int> inside{0}, changing{0}, wrong{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> runners;
  for (int t = 0; t < 3; ++t) {
    runners.emplace_back([&] {
      while (!stop) {
        const RunGate::Run run(gate);
        ++inside;
        wrong += changing.load();
        const RunGate::Run nested(gate);
        EXPECT_EQ(gate.try_begin_change(), RunGate::Begun::kInsideRun);
        --inside;
      }
    });
  }
  for (int i = 0; i < 2000; ++i) {
    const RunGate::Change change(&gate);
    ++changing;
    wrong += inside.load();
    --changing;
  }
  stop = true;
  for (auto& r : runners) r.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(gate.try_begin_change(), RunGate::Begun::kYes);
  gate.end_change();
}

TEST(Tensor, WhatIsMovedFromHoldsNothing) {
  Tensor a = floats({2}, {1, 2});
  Tensor b = std::move(a);
  EXPECT_FALSE(a.initialized());  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_EQ(b.data<float>()[1], 2);
  a = std::move(b);
  EXPECT_FALSE(b.initialized());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(a.numel(), 2);
}

// Can be copied a few times only, as if memory or threads ended then.
struct Scarce {
  int* copies_left;
  std::function<void()> work;

  Scarce(int* left, std::function<void()> w) : copies_left(left), work(std::move(w)) {}
  Scarce(const Scarce& other) : copies_left(other.copies_left), work(other.work) {
    if (--*copies_left < 0) throw std::bad_alloc();
  }
  Scarce(Scarce&&) = default;
  void operator()(int) const { work(); }
};

TEST(Threads, ThoseThatStartedAreStoppedWhenOneIsNot) {
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0}, ended{0};
  int copies_left = 4;
  const Scarce body(&copies_left, [&] {
    ++begun;
    while (!stop) std::this_thread::yield();
    ++ended;
  });
  Threads threads;
  EXPECT_EQ(kind_of([&] { threads.start(50, "readers", body, [&] { stop = true; }); }), ErrorKind::kResourceExhausted);
  EXPECT_GT(begun, 0);
  EXPECT_EQ(ended, begun);
}

TEST(Scope, SharedValuesOutliveIt) {
  std::shared_ptr<Value> kept;
  {
    const auto scope = Scope::make();
    kept = scope->share("w");
    kept->as<Tensor>() = floats({1}, {1});
    scope->erase("w");
    EXPECT_EQ(scope->find_var("w"), nullptr);
  }
  EXPECT_TRUE(kept->initialized());
}

}  // namespace
}  // namespace anabranch
