// Chains of steps over numbers: their results by the kernel that reads a table, as the host has it, and by the text
// that is written for them, which the tests' machine runs.
#pragma once
#include <cmath>

#include "cuda/step_kernels.h"
#include "cuda/step_text.h"
#include "harness.h"
#include "ops/math/step_functions.h"
#include "ptx_machine.h"

namespace anabranch::cuda {

using Numbers = std::vector<float>;

inline constexpr int kStepCodes = static_cast<int>(math::StepCode::kCopy) + 1;

// Numbers as they lie in memory, at a multiple of 16 bytes.
class Stored {
 public:
  Stored(const StepType& type, const Numbers& numbers) : type_(type), bytes_(numbers.size() * size()) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float x = numbers[i];
      const uint32_t bits = type.name == "f32"   ? device::bits_of(x)
                            : type.name == "f16" ? device::half(x).bits
                                                 : device::bfloat16(x).bits;
      memcpy(bytes_.data() + i * size(), &bits, size());
    }
  }

  void* data() { return bytes_.data(); }
  uint64_t bytes() const { return bytes_.size(); }
  size_t count() const { return bytes_.size() / size(); }
  float operator[](size_t i) const {
    if (type_.name == "f16") return device::half_to_float(static_cast<uint16_t>(bits(i)));
    return device::float_of(type_.is_narrow() ? bits(i) << 16 : bits(i));
  }
  Numbers numbers() const {
    Numbers all;
    for (size_t i = 0; i < count(); ++i) all.push_back((*this)[i]);
    return all;
  }
  // The place among all numbers of the type, by size; zeros of both signs have two.
  int64_t rank(size_t i) const {
    const int64_t sign = int64_t{1} << (8 * size() - 1), magnitude = bits(i) & (sign - 1);
    return bits(i) & sign ? -1 - magnitude : magnitude;
  }

 private:
  size_t size() const { return static_cast<size_t>(type_.bytes()); }
  uint32_t bits(size_t i) const {
    uint32_t bits = 0;
    memcpy(&bits, bytes_.data() + i * size(), size());
    return bits;
  }
  StepType type_;
  std::vector<std::byte> bytes_;
};

// The first number that is more than `places` apart, as text, "" when none is. A NaN is as any other.
inline std::string difference(const std::vector<Stored>& expected, const std::vector<Stored>& got, int64_t places = 0) {
  for (size_t k = 0; k < expected.size(); ++k) {
    for (size_t i = 0; i < expected[k].count(); ++i) {
      const float x = expected[k][i], y = got[k][i];
      if (std::isnan(x) || std::isnan(y) ? std::isnan(x) && std::isnan(y)
                                         : std::abs(expected[k].rank(i) - got[k].rank(i)) <= places)
        continue;
      std::ostringstream text;
      text.precision(9);
      text << "element " << i << " of output " << k << " must be " << x << ", got " << y;
      return text.str();
    }
  }
  return "";
}

struct StepOperand {
  Numbers numbers;
  int64_t repeat = 1, period = 0;
};

struct StepRun {
  StepType type;
  std::vector<ElementStep> steps;
  std::vector<StepOperand> inputs;
  int64_t n = 0;
  bool in_place = false;  // the first output lies where the first input does

  // Each output.
  std::vector<Stored> by_kernel() const {
    return results([this](const ElementStepsArgs& a, const std::vector<PtxRange>&) {
      Sim sim;
      ab_queue* q = sim.queue("compute");
      EXPECT_EQ(api.launch(q, kernel(said("element_steps/", type.name).c_str()), &a, sizeof a, nullptr, 0), AB_OK);
      EXPECT_EQ(sim.finish(q), AB_OK) << last_error();
    });
  }
  std::vector<Stored> by_machine(const PtxMachine& machine, const char* entry, PtxGrid grid = {}) const {
    return results([&](const ElementStepsArgs& a, const std::vector<PtxRange>& memory) {
      machine.run(entry, grid, std::as_bytes(std::span(&a, 1)), memory);
    });
  }
  std::string text() const { return step_text(step_functions(), steps, type); }

 private:
  template <class Run> std::vector<Stored> results(const Run& run) const {
    ElementStepsArgs a{};
    for (const ElementStep& s : steps) a.outs += s.out != kNowhere;
    std::vector<Stored> in, out;
    for (const StepOperand& x : inputs) in.emplace_back(type, x.numbers);
    for (int k = 0; k < a.outs; ++k) out.emplace_back(type, Numbers(static_cast<size_t>(n), 0.77f));
    if (in_place) out[0] = in[0];
    std::vector<PtxRange> memory;
    for (size_t k = 0; k < in.size(); ++k) {
      Stored& x = in_place && k == 0 ? out[0] : in[k];
      a.in[k] = {{x.data(), x.bytes()}, inputs[k].repeat, inputs[k].period};
      memory.push_back({x.data(), x.bytes(), false});
    }
    for (size_t k = 0; k < out.size(); ++k) {
      a.out[k] = {out[k].data(), out[k].bytes()};
      memory.push_back({out[k].data(), out[k].bytes(), true});
    }
    a.steps = {steps.data(), steps.size() * sizeof(ElementStep)};
    a.n = n;
    a.inputs = static_cast<int32_t>(inputs.size());
    a.count = static_cast<int32_t>(steps.size());
    run(a, memory);
    return out;
  }
};

// Its operands are the first inputs.
inline ElementStep step_of(int code, uint8_t out = kNowhere, uint8_t count = 4) {
  ElementStep s{};
  s.code = static_cast<uint8_t>(code);
  s.kept = kNowhere;
  s.out = out;
  s.count = count;
  for (uint8_t k = 0; k < 4; ++k) s.operands[k] = k;
  return s;
}
inline ElementStep step_of_two(math::StepCode code, uint8_t out = kNowhere) {
  return step_of(static_cast<int>(code), out, 2);
}

// Whether no instruction rounds but as C++ says: then a GPU's results are those of the host. The functions of nvcc's
// library are others than the host's.
inline bool is_exact(const std::string& text) {
  return text.find("fma.") == std::string::npos && text.find(".approx") == std::string::npos;
}

}  // namespace anabranch::cuda
