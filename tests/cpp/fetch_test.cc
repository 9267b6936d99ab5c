// How what the replicas have is joined, and what programs that are none are told when they are spread over replicas.
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/compiled_program.h"
#include "graph/replicate.h"

namespace anabranch {
namespace {

Tensor column(std::vector<float> values) {
  Tensor t(Shape{static_cast<int64_t>(values.size()), 1}, DType::kFloat32);
  std::copy(values.begin(), values.end(), t.mutable_data<float>());
  return t;
}

TensorArray array(std::vector<std::vector<float>> values) {
  TensorArray made;
  for (auto& v : values) made.push_back(column(std::move(v)));
  return made;
}

std::vector<float> values(const Tensor& t) { return {t.data<float>(), t.data<float>() + t.numel()}; }

template <class Fn> std::string message(Fn&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Fetch, ArraysAreJoinedTensorByTensor) {
  const FetchedValue joined = merge_fetched({array({{1, 2}, {3}}), array({{4}, {5, 6}})}, "steps");
  const auto& got = std::get<TensorArray>(joined);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(values(got[0]), (std::vector<float>{1, 2, 4}));
  EXPECT_EQ(values(got[1]), (std::vector<float>{3, 5, 6}));
}

TEST(Fetch, ArraysOfDifferentLengthsAreRefused) {
  const std::string text = message([] { merge_fetched({array({{1}, {2}}), array({{3}})}, "steps"); });
  EXPECT_NE(text.find("steps has 2 tensors on one replica, 1 on another"), std::string::npos) << text;
  EXPECT_NE(message([] { merge_fetched({}, "steps"); }).find("exists on no replica"), std::string::npos);
}

TEST(Replicate, VariablesOfNoBlockAreNamed) {
  const ir::ProgramRef program = ir::Program::make();
  ir::Var y;
  y.name = "y";
  program->global_block().create_var(y);
  auto op = std::make_shared<ir::Op>();
  op->type = "relu";
  op->inputs = {{"X", {"absent"}}};
  op->outputs = {{"Out", {"y"}}};
  program->global_block().push_op(op);
  const std::string text = message([&] { replicate(*program, {}); });
  EXPECT_NE(text.find("variable absent is not in the program"), std::string::npos) << text;
}

}  // namespace
}  // namespace anabranch
