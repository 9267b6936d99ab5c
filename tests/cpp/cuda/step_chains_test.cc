// The results of the texts of compiled chains, run by the tests' machine: several steps, several lanes, and inputs that
// are spread.
#include <random>
#include <set>

#include "step_run.h"

namespace anabranch::cuda {
namespace {

using math::StepCode;

using CudaStepChains = Cuda;

Numbers ordinary(size_t count, unsigned seed) {
  std::mt19937 draw(seed);
  std::normal_distribution<float> of(0, 2);
  Numbers all(count);
  for (float& x : all) x = of(draw);
  return all;
}

// Steps that read inputs, what steps have kept, and the step before.
class Draw {
 public:
  Draw(unsigned seed, int inputs, std::vector<int> codes) : draw_(seed), inputs_(inputs), codes_(std::move(codes)) {}

  std::vector<ElementStep> steps(int count) {
    std::vector<int> kept_at(kKept, kNever);
    std::vector<ElementStep> made;
    uint8_t outs = 0;
    for (int i = 0; i < count; ++i) {
      ElementStep s = step_of(codes_[any(codes_.size())]);
      for (uint8_t& operand : s.operands) operand = known(kept_at, i);
      if (i > 0) s.previous = static_cast<uint8_t>(i % 3 ? 1 : any(16));
      for (float& p : s.p) p = kNumbers[any(std::size(kNumbers))];
      s.exact = any(4) == 0;
      if (any(3) == 0) {
        const size_t k = any(kKept);
        s.kept = static_cast<uint8_t>(static_cast<size_t>(inputs_) + k);
        kept_at[k] = i;
      }
      if (i + 1 == count || any(3) > 0) s.out = outs++;
      made.push_back(s);
    }
    return made;
  }

 private:
  static constexpr size_t kKept = 5;
  static constexpr int kNever = 1 << 20;
  static constexpr float kNumbers[] = {0.5f, 2, 1, 0.25f, -0.5f, 0, 6};

  size_t any(size_t count) { return draw_() % count; }

  // An input, or what another step than the one before has kept.
  uint8_t known(const std::vector<int>& kept_at, int i) {
    const size_t k = any(kKept);
    return static_cast<uint8_t>(kept_at[k] < i - 1 && any(2) ? static_cast<size_t>(inputs_) + k
                                                             : any(static_cast<size_t>(inputs_)));
  }

  std::mt19937 draw_;
  const int inputs_;
  const std::vector<int> codes_;
};

std::vector<int> exact_codes() {
  std::vector<int> codes;
  for (int code = 0; code < kStepCodes; ++code) {
    if (is_exact(StepRun{{"f32"}, {step_of(code, 0)}, {}}.text())) codes.push_back(code);
  }
  return codes;
}

std::vector<int> all_codes() {
  std::vector<int> codes;
  for (int code = 0; code < kStepCodes; ++code) codes.push_back(code);
  return codes;
}

StepRun drawn(const std::string& type, unsigned seed, int steps, const std::vector<int>& codes, size_t n) {
  constexpr int kInputs = 3;
  StepRun run{{type}, Draw(seed, kInputs, codes).steps(steps), {}, static_cast<int64_t>(n)};
  for (unsigned k = 0; k < kInputs; ++k) run.inputs.push_back({ordinary(n, 100 * seed + k)});
  return run;
}

// By both entries, where there is one for packs. How many elements those have.
int expect_both_entries(const StepRun& run, const std::vector<Stored>& expected) {
  const PtxMachine machine(run.text());
  const int elements = elements_of_pack(step_functions(), run.steps, run.type);
  EXPECT_EQ(difference(expected, run.by_machine(machine, kOneEntry, {2, 3})), "");
  if (elements > 1) {
    EXPECT_EQ(difference(expected, run.by_machine(machine, kPackEntry, {2, 3})), "");
  }
  return elements;
}

// The share of numbers that an error could show in.
double finite_share(const std::vector<Stored>& all) {
  size_t finite = 0, count = 0;
  for (const Stored& out : all) {
    for (const float x : out.numbers()) finite += std::isfinite(x) && x != 0, ++count;
  }
  return static_cast<double>(finite) / static_cast<double>(count);
}

TEST_F(CudaStepChains, LongChainsHaveTheBitsOfTheKernelThatReadsTables) {
  const std::vector<int> codes = exact_codes();
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (unsigned seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(said(type, " ", seed));
      const StepRun run = drawn(type, seed, 60, codes, 64);
      const auto expected = run.by_kernel();
      EXPECT_GT(finite_share(expected), 0.03);
      expect_both_entries(run, expected);
    }
  }
}

// Each step as its own text, of which memory holds the results: of 16-bit floats, those that are rounded.
std::vector<Stored> one_by_one(const StepRun& run) {
  std::vector<Stored> outs;
  std::map<int, Numbers> values;
  for (size_t k = 0; k < run.inputs.size(); ++k) values[static_cast<int>(k)] = run.inputs[k].numbers;
  Numbers last;
  for (const ElementStep& s : run.steps) {
    StepRun one{run.type, {step_of(s.code, 0)}, {}, run.n};
    std::copy(std::begin(s.p), std::end(s.p), one.steps[0].p);
    for (int k = 0; k < 4; ++k) one.inputs.push_back({s.previous >> k & 1 ? last : values.at(s.operands[k])});
    const Stored result = one.by_machine(PtxMachine(one.text()), kOneEntry)[0];
    last = result.numbers();
    if (s.kept != kNowhere) values[s.kept] = last;
    if (s.out != kNowhere) outs.push_back(result);
  }
  return outs;
}

TEST_F(CudaStepChains, LongChainsHaveTheBitsOfTheirStepsOneByOne) {
  std::set<int> packs;
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (unsigned seed = 20; seed < 28; ++seed) {
      SCOPED_TRACE(said(type, " ", seed));
      StepRun run = drawn(type, seed, 4 + 8 * static_cast<int>(seed - 20), all_codes(), 32);
      for (ElementStep& s : run.steps) s.exact = 0;
      const auto expected = one_by_one(run);
      EXPECT_GT(finite_share(expected), 0.03);
      packs.insert(expect_both_entries(run, expected));
    }
  }
  EXPECT_THAT(packs, testing::ElementsAre(1, 2, 4, 8));  // the longer a chain, the smaller its packs
}

// 1 + 2^-12 is not a 16-bit float: it stays where the sum so far is exact.
TEST_F(CudaStepChains, ASumSoFarIsNotRounded) {
  for (const char* type : {"f16", "bf16"}) {
    StepRun run{{type}, {step_of_two(StepCode::kAdd), step_of_two(StepCode::kSub, 0)}, {}, 8};
    run.inputs = {{Numbers(8, 1)}, {Numbers(8, 0x1p-12f)}, {Numbers(8, 1)}};
    run.steps[1].previous = 1;
    run.steps[1].operands[1] = 2;
    for (const bool exact : {false, true}) {
      run.steps[0].exact = exact;
      const auto expected = run.by_kernel();
      EXPECT_EQ(expected[0][0], exact ? 0x1p-12f : 0);
      expect_both_entries(run, expected);
    }
  }
}

TEST_F(CudaStepChains, LanesTakeAllElementsForAnyNumberOfThem) {
  StepRun run{{"f32"}, {step_of_two(StepCode::kSub, 0)}, {}};
  for (const int64_t n : {1, 4, 7, 16, 23, 64}) {
    run.n = n;
    run.inputs = {{ordinary(static_cast<size_t>(n), 1)}, {ordinary(static_cast<size_t>(n), 2)}};
    const PtxMachine machine(run.text());
    const auto expected = run.by_kernel();
    for (const PtxGrid grid : {PtxGrid{1, 1}, {1, 5}, {3, 4}, {2, 32}}) {
      EXPECT_EQ(difference(expected, run.by_machine(machine, kOneEntry, grid)), "") << n << " by " << grid.lanes;
      if (n % 4) continue;
      EXPECT_EQ(difference(expected, run.by_machine(machine, kPackEntry, grid)), "") << n << " by " << grid.lanes;
    }
  }
}

TEST_F(CudaStepChains, SmallerInputsAreSpread) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (const auto& [repeat, period] : {std::pair<int64_t, int64_t>{1, 1}, {1, 5}, {5, 1}, {3, 7}, {7, 3}, {105, 1}}) {
      StepRun run{{type}, {step_of_two(StepCode::kDiv, 0)}, {}, 105};
      run.inputs = {{ordinary(105, 1)}, {ordinary(static_cast<size_t>(period), 2), repeat, period}};
      const PtxMachine machine(run.text());
      EXPECT_EQ(difference(run.by_kernel(), run.by_machine(machine, kOneEntry, {4, 8})), "")
          << type << ", " << repeat << " times " << period;
    }
  }
}

TEST_F(CudaStepChains, AResultMayLieInTheMemoryOfAnInput) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    StepRun run{{type}, {step_of_two(StepCode::kSub, 0), step_of_two(StepCode::kMul, 1)}, {}, 64, true};
    run.inputs = {{ordinary(64, 1)}, {ordinary(64, 2)}};
    expect_both_entries(run, run.by_kernel());
  }
}

// An element past those that 32 bits count, by lanes of the last blocks alone: memory is there for it alone.
TEST_F(CudaStepChains, ElementsAfterFourBillionAreFound) {
  constexpr int64_t kLast = (int64_t{1} << 33) - 1;
  constexpr uint32_t kBlocks = 1u << 31;
  const PtxMachine machine(StepRun{{"f32"}, {step_of_two(StepCode::kSub, 0)}, {}}.text());
  for (const auto& [repeat, period] : {std::pair<int64_t, int64_t>{1, 7}, {3, 7}, {int64_t{1} << 32, 2}, {5, 11}}) {
    std::vector<float> x = ordinary(11, 1), y = ordinary(11, 2), out(4);
    ElementStepsArgs a{};
    a.in[0] = {{x.data(), 44}, repeat, period};
    a.in[1] = {{y.data(), 44}, 1, 11};
    a.out[0] = {reinterpret_cast<float*>(reinterpret_cast<uint64_t>(out.data()) - (kLast - 3) * 4), 16};
    a.n = kLast + 1;
    const PtxRange memory[] = {{x.data(), 44, false}, {y.data(), 44, false}, {out.data(), 16, true}};
    machine.run(kOneEntry, {kBlocks, 4, kBlocks - 1}, std::as_bytes(std::span(&a, 1)), memory);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t i = kLast - 3 + k;
      EXPECT_EQ(out[static_cast<size_t>(k)],
                x[static_cast<size_t>(i / repeat % period)] - y[static_cast<size_t>(i % 11)])
          << repeat << " times " << period;
    }
  }
}

}  // namespace
}  // namespace anabranch::cuda
