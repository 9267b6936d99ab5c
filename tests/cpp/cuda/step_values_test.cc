// The results of the texts of compiled chains, run by the tests' machine: each function over numbers of all kinds.
#include <random>

#include "step_run.h"

namespace anabranch::cuda {
namespace {

using math::StepCode;
using testing::HasSubstr;

using CudaStepValues = Cuda;

constexpr float kInfinite = std::numeric_limits<float>::infinity();

// p of a step.
using StepNumbers = std::array<float, 4>;
constexpr StepNumbers kOrdinary{0.5f, 2, 1, 0.25f};
constexpr StepNumbers kNumbers[] = {
    kOrdinary, {-0.5f, 3, 0, 2}, {0, 0, 0, 0}, {6, 6, 3, 1}, {kInfinite, -kInfinite, 1, 0}};

Numbers of_both_signs(std::initializer_list<float> sizes) {
  Numbers all;
  for (const float x : sizes) all.insert(all.end(), {x, -x});
  return all;
}

// Zeros, ordinary numbers, numbers that are large, small and denormal in one type or the other, and NaN.
Numbers values() {
  Numbers all = of_both_signs(
      {0,     1e-45f,    1e-40f, 0x1p-126f, 6e-8f, 1e-6f, 1e-3f, 0.1f,          0.3f,     0.5f, 0.58f, 0.6f,
       1,     1.03f,     1.5f,   2,         2.5f,  3,     7.25f, 9.1f,          20,       25,   88,    100,
       65504, 123456.7f, 7.7e8f, 1e10f,     5e20f, 1e30f, 3e38f, 3.4028235e38f, kInfinite});
  all.push_back(std::numeric_limits<float>::quiet_NaN());
  return all;
}

using Operands = std::vector<StepOperand>;

// Four operands: each number with each one of some.
Operands of_all_kinds() {
  std::mt19937 draw(7);
  const Numbers all = values(), some = of_both_signs({0, 1e-40f, 0.3f, 1, 3, 25, 1e30f, kInfinite});
  Operands made(4);
  for (const float x : all) {
    for (size_t k = 0; k <= some.size(); ++k) {
      made[0].numbers.push_back(x);
      made[1].numbers.push_back(k == some.size() ? all.back() : some[k]);
      for (const size_t other : {2, 3}) made[other].numbers.push_back(all[draw() % all.size()]);
    }
  }
  return made;
}

template <class Draw> Operands drawn(size_t count, Draw draw) {
  Operands made(4);
  for (StepOperand& operand : made) {
    for (size_t i = 0; i < count; ++i) operand.numbers.push_back(draw());
  }
  return made;
}
Operands of_any_bits() {
  return drawn(1024, [draw = std::mt19937(3)]() mutable { return device::float_of(static_cast<uint32_t>(draw())); });
}
Operands of_ordinary_size() {
  return drawn(512,
               [draw = std::mt19937(5), size = std::normal_distribution<float>(0, 2)]() mutable { return size(draw); });
}

// Whole packs of them.
StepRun run_of(const std::string& type, int code, Operands operands, const StepNumbers& numbers = kOrdinary) {
  const size_t count = (operands[0].numbers.size() + 7) / 8 * 8;
  for (StepOperand& operand : operands) operand.numbers.resize(count, 1);
  StepRun run{{type}, {step_of(code, 0)}, std::move(operands), static_cast<int64_t>(count)};
  std::copy(numbers.begin(), numbers.end(), run.steps[0].p);
  return run;
}
StepRun run_of(StepCode code) { return run_of("f32", static_cast<int>(code), of_all_kinds()); }

// How many places of the type a result may be from that of the host's functions.
int64_t places_of(int code) {
  switch (static_cast<StepCode>(code)) {
    case StepCode::kTanhShrink: return 512;  // what is left of x, which is near tanh x
    case StepCode::kSwishGrad:               // sums of terms of both signs
    case StepCode::kMishGrad:
    case StepCode::kPowDy: return 16;  // a product of three functions' results
    default: return 4;
  }
}

// By both entries.
std::string difference_of(const StepRun& run, const std::string& text, int64_t places) {
  const PtxMachine machine(text);
  const auto expected = run.by_kernel(), one = run.by_machine(machine, kOneEntry);
  const std::string found = difference(expected, one, places);
  return found.empty() ? difference(one, run.by_machine(machine, kPackEntry)) : found;
}

TEST_F(CudaStepValues, EveryStepOfEveryTypeHasTheValuesOfTheKernelThatReadsTables) {
  const Operands operands = of_all_kinds();
  for (const char* type : {"f32", "f16", "bf16"}) {
    for (int code = 0; code < kStepCodes; ++code) {
      std::string before;
      for (const StepNumbers& numbers : kNumbers) {
        const StepRun run = run_of(type, code, operands, numbers);
        const std::string text = run.text();
        if (std::exchange(before, text) == text) break;  // it reads no numbers
        EXPECT_EQ(difference_of(run, text, is_exact(text) ? 0 : places_of(code)), "")
            << "step " << code << " of " << type << ", whose numbers are " << testing::PrintToString(numbers);
      }
    }
  }
}

TEST_F(CudaStepValues, StepsThatRoundAsTheHostDoesHaveItsBitsForAnyOperands) {
  const Operands operands = of_any_bits();
  for (const char* type : {"f32", "f16", "bf16"}) {
    int exact = 0;
    for (int code = 0; code < kStepCodes; ++code) {
      const StepRun run = run_of(type, code, operands);
      const std::string text = run.text();
      if (!is_exact(text)) continue;
      ++exact;
      EXPECT_EQ(difference_of(run, text, 0), "") << "step " << code << " of " << type;
    }
    EXPECT_GE(exact, 60) << type;
  }
}

// The largest error, in units of what the parts of the functions may be off: of x - tanh x, say, that is x.
double largest_error(const StepRun& run) {
  const Numbers expected = run.by_kernel()[0].numbers(),
                got = run.by_machine(PtxMachine(run.text()), kOneEntry)[0].numbers();
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    const auto size = [&](size_t k) { return 1 + std::abs(double{run.inputs[k].numbers[i]}); };
    const double whole = std::max(size(0) * size(1), std::abs(double{expected[i]}));
    const double error = std::abs(double{expected[i]} - got[i]) / whole;
    largest = std::isnan(error) ? kInfinite : std::max(largest, error);
  }
  return largest;
}

TEST_F(CudaStepValues, StepsOfOrdinaryNumbersAreNearThoseOfTheHost) {
  const Operands operands = of_ordinary_size();
  for (int code = 0; code < kStepCodes; ++code)
    EXPECT_LT(largest_error(run_of("f32", code, operands)), 0x1p-22) << "step " << code;
}

struct Change {
  StepCode code;
  std::string from, to;
};

TEST_F(CudaStepValues, AWrongTextHasOtherValues) {
  const Change changes[] = {
      {StepCode::kSub, "sub.rn.f32", "add.rn.f32"},
      {StepCode::kMul, "mul.rn.f32", "div.rn.f32"},
      {StepCode::kDiv, "%v0;", "%v1;"},
      {StepCode::kMax, "setp.gt.f32", "setp.ge.f32"},
      {StepCode::kRelu, "setp.lt.f32", "setp.ltu.f32"},
      {StepCode::kTanh, "0f4038AA3B", "0f4038AA5B"},
      {StepCode::kSin, " 32, 32;", " 31, 32;"},
      {StepCode::kMod, "fma.rz.f32", "fma.rn.f32"},
      {StepCode::kFloor, "cvt.rmi", "cvt.rzi"},
      {StepCode::kRound, "setp.eq.f32", "setp.neu.f32"},
  };
  for (const Change& change : changes) {
    const StepRun run = run_of(change.code);
    std::string text = run.text();
    size_t at = text.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    const int64_t places = is_exact(text) ? 0 : 4;
    EXPECT_EQ(difference_of(run, text, places), "");
    for (; at != std::string::npos; at = text.find(change.from, at + change.to.size()))
      text.replace(at, change.from.size(), change.to);
    EXPECT_THAT(difference_of(run, text, places), HasSubstr("must be")) << change.from;
  }
}

// Texts that are refused, and why.
TEST_F(CudaStepValues, TheMachineRefusesWhatItDoesNotKnow) {
  const StepRun run = run_of(StepCode::kSub);
  const std::string text = run.text();
  const std::pair<Change, const char*> wrong[] = {
      {{{}, "sub.rn.f32", "lg2.approx.f32"}, "an instruction that is known here, got lg2.approx.f32 of 3 operands"},
      {{{}, "bra LOOP", "bra AWAY"}, "the end of a block that has the label AWAY"},
      {{{}, ".reg .pred %past;", ""}, "about registers that are declared, got %past"},
      {{{}, "st.global.f32", "st.shared.f32"}, "an access to memory that is known here, got st.shared.f32"},
      {{{}, "st.global.f32", "st.local.f32"}, "within memory that the kernel has, to write, got"},
      {{{}, "%i, 4, %q0", "%i, 8, %q0"}, "within memory that the kernel has, to write, got"},
      {{{}, "%q3, 4, %q0", "%q3, 8, %q0"}, "within memory that the kernel has, to read, got"},
      {{{}, "%i, 4, %q0", "%i, 2, %q0"}, "at a multiple of 4 bytes, got"},
      {{{}, "add.s64 %i, %i, %apart", "add.s64 %i, %i, 0"}, "a lane that ends, got"},
  };
  for (const auto& [change, part] : wrong) {
    std::string other = text;
    const size_t at = other.find(change.from);
    ASSERT_NE(at, std::string::npos) << change.from;
    other.replace(at, change.from.size(), change.to);
    try {
      (void)run.by_machine(PtxMachine(other), kOneEntry);
      ADD_FAILURE() << "nothing is wrong with " << change.to;
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(part));
    }
  }
}

}  // namespace
}  // namespace anabranch::cuda
