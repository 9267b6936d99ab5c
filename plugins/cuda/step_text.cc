#include "step_text.h"

#include <array>
#include <bit>
#include <cstddef>
#include <iomanip>
#include <set>
#include <vector>

#include "ops/math/step_functions.h"

namespace anabranch::cuda {
namespace {

using device::ElementStep;
using device::ElementStepsArgs;
using device::kNowhere;
using device::StepInput;

constexpr const char* kFunctions[] = {
#define AB_ONE(F) "ab_step_" #F,
#define AB_NAMED(name, F) AB_ONE(F)
#define AB_OF_ONE(name, F) AB_ONE(F##Grad)
#define AB_OF_TWO(name, F) AB_ONE(F##Dx) AB_ONE(F##Dy)
    AB_STEP_CODES(AB_ONE, AB_NAMED, AB_OF_ONE, AB_OF_TWO)};

const char* function_of(const ElementStep& s) {
  if (s.code >= std::size(kFunctions)) fail(AB_INTERNAL, "there is no step of code ", int{s.code});
  return kFunctions[s.code];
}
bool rounds(const ElementStep& s, const StepType& type) { return type.is_narrow() && !s.exact; }

// "0f3F800000", PTX's form of numbers.
std::string number(float x) {
  std::ostringstream text;
  text << "0f" << std::hex << std::uppercase << std::setw(8) << std::setfill('0') << device::bits_of(x);
  return text.str();
}

std::string word(int k) { return said("%b", k); }

std::string of_input(int k, size_t field) {
  return said("[args+", offsetof(ElementStepsArgs, in) + static_cast<size_t>(k) * sizeof(StepInput) + field, "]");
}

// Operands without a step that computes them.
std::set<int> inputs_of(std::span<const ElementStep> steps) {
  std::set<int> inputs;
  for (const ElementStep& s : steps) {
    for (int k = 0; k < s.count; ++k) {
      if (!(s.previous >> k & 1)) inputs.insert(s.operands[k]);
    }
  }
  for (const ElementStep& s : steps) inputs.erase(s.kept);
  return inputs;
}

// Registers: %i is the index of the element or pack, %v are values, %b packed pairs and %q addresses.
class Entry {
 public:
  Entry(const PtxFunctions& functions, std::span<const ElementStep> steps, const StepType& type, int elements)
      : functions_(functions), steps_(steps), type_(type), elements_(elements) {
    value_of_.fill(-1);
  }

  std::string text(const char* name) {
    std::string body;
    for (const int k : inputs_of(steps_)) {
      value_of_[static_cast<size_t>(k)] = values_++;
      body += elements_ == 1 ? read_one(k) : read_pack(k);
    }
    for (const ElementStep& s : steps_) body += step(s);
    return said(".visible .entry ", name, "(.param .align 8 .b8 args[", sizeof(ElementStepsArgs), "])\n{\n",
                ".reg .pred %past;\n.reg .b32 %b<12>;\n.reg .b64 %q<5>;\n.reg .b64 %i, %n, %apart;\n.reg .f32 %v<",
                values_ * elements_, ">;\n", begin(), "LOOP:\nsetp.ge.s64 %past, %i, %n;\n@%past bra END;\n", body,
                "add.s64 %i, %i, %apart;\nbra LOOP;\nEND:\nret;\n}\n");
  }

 private:
  // Threads of all blocks are numbered consecutively and advance by their number, as those of each_kernel() do.
  std::string begin() const {
    return said("mov.u32 %b0, %ctaid.x;\nmov.u32 %b1, %ntid.x;\nmov.u32 %b2, %tid.x;\nmov.u32 %b3, %nctaid.x;\n",
                "mul.wide.u32 %i, %b0, %b1;\ncvt.u64.u32 %q0, %b2;\nadd.s64 %i, %i, %q0;\n",
                "mul.wide.u32 %apart, %b3, %b1;\nld.param.s64 %n, [args+", offsetof(ElementStepsArgs, n),
                "];\nshr.u64 %n, %n, ", std::countr_zero(static_cast<unsigned>(elements_)), ";\n");
  }

  std::string value(int id, int element) const { return said("%v", id * elements_ + element); }
  std::string widen(int from, const std::string& to) const {
    return functions_.call("ab_step_widen_" + type_.name, {word(from)}, to);
  }

  std::string read_one(int k) const {
    const std::string to = value(value_of_[static_cast<size_t>(k)], 0);
    std::string text =
        said("ld.param.b64 %q0, ", of_input(k, 0), ";\nld.param.b64 %q1, ", of_input(k, offsetof(StepInput, repeat)),
             ";\nld.param.b64 %q2, ", of_input(k, offsetof(StepInput, period)), ";\n",
             functions_.call("ab_step_place", {"%i", "%q1", "%q2"}, "%q3"), "mad.lo.s64 %q0, %q3, ", type_.bytes(),
             ", %q0;\n");
    if (!type_.is_narrow()) return text + said("ld.global.f32 ", to, ", [%q0];\n");
    return text + "ld.global.u16 %b4, [%q0];\n" + widen(4, to);
  }

  std::string read_pack(int k) const {
    const int id = value_of_[static_cast<size_t>(k)];
    std::string text =
        said("ld.param.b64 %q0, ", of_input(k, 0), ";\nmad.lo.s64 %q0, %i, ", type_.bytes() * elements_, ", %q0;\n");
    if (!type_.is_narrow()) return text + said("ld.global", vector(elements_), ".f32 {", list(id), "}, [%q0];\n");
    text += said("ld.global", vector(elements_ / 2), ".b32 {", words(), "}, [%q0];\n");
    for (int e = 0; e < elements_; e += 2) {
      const int from = 4 + e / 2;
      text += said("and.b32 %b8, ", word(from), ", 65535;\nshr.u32 %b9, ", word(from), ", 16;\n");
      text += widen(8, value(id, e)) + widen(9, value(id, e + 1));
    }
    return text;
  }

  static std::string vector(int count) { return count == 1 ? "" : said(".v", count); }
  std::string words() const {
    std::string text = word(4);
    for (int k = 1; k < elements_ / 2; ++k) text += ", " + word(4 + k);
    return text;
  }
  std::string list(int id) const {
    std::string text = value(id, 0);
    for (int e = 1; e < elements_; ++e) text += ", " + value(id, e);
    return text;
  }

  // An operand that the function does not read is replaced by its first one.
  int operand(const ElementStep& s, int k) const {
    if (k >= s.count) return operand(s, 0);
    const int id = s.previous >> k & 1 ? last_ : value_of_[s.operands[k]];
    if (id < 0) fail(AB_INTERNAL, "a step reads what no step before it has left");
    return id;
  }

  std::string step(const ElementStep& s) {
    const int id = values_++;
    std::string text;
    for (int e = 0; e < elements_; ++e) {
      std::vector<std::string> operands;
      for (int k = 0; k < 4; ++k) operands.push_back(value(operand(s, k), e));
      for (const float p : s.p) operands.push_back(number(p));
      text += functions_.call(function_of(s), operands, value(id, e));
      if (rounds(s, type_)) text += functions_.call("ab_step_round_" + type_.name, {value(id, e)}, value(id, e));
    }
    last_ = id;
    if (s.kept != kNowhere) value_of_[s.kept] = id;
    return s.out == kNowhere ? text : text + write(s.out, id);
  }

  std::string write(int out, int id) const {
    std::string text = said("ld.param.b64 %q0, [args+",
                            offsetof(ElementStepsArgs, out) + static_cast<size_t>(out) * sizeof(device::DeviceOut),
                            "];\nmad.lo.s64 %q0, %i, ", type_.bytes() * elements_, ", %q0;\n");
    if (!type_.is_narrow()) return text + said("st.global", vector(elements_), ".f32 [%q0], {", list(id), "};\n");
    const auto narrow = [&](int e, int to) {
      return functions_.call("ab_step_narrow_" + type_.name, {value(id, e)}, word(to));
    };
    if (elements_ == 1) return text + narrow(0, 4) + "st.global.u16 [%q0], %b4;\n";
    for (int e = 0; e < elements_; e += 2) {
      text += narrow(e, 8) + narrow(e + 1, 9);
      text += said("shl.b32 %b9, %b9, 16;\nor.b32 ", word(4 + e / 2), ", %b8, %b9;\n");
    }
    return text + said("st.global", vector(elements_ / 2), ".b32 [%q0], {", words(), "};\n");
  }

  const PtxFunctions& functions_;
  const std::span<const ElementStep> steps_;
  const StepType& type_;
  const int elements_;
  std::array<int, 256> value_of_;  // by operand
  int values_ = 0, last_ = -1;
};

}  // namespace

int elements_of_pack(const PtxFunctions& functions, std::span<const ElementStep> steps, const StepType& type) {
  constexpr size_t kLongText = 100000;
  size_t length = 0;  // for one element
  for (const ElementStep& s : steps) {
    length += functions.length(function_of(s));
    if (rounds(s, type)) length += functions.length("ab_step_round_" + type.name);
  }
  int elements = 16 / type.bytes();
  while (elements > 1 && length * static_cast<size_t>(elements) > kLongText) elements /= 2;
  return elements;
}

std::string step_text(const PtxFunctions& functions, std::span<const ElementStep> steps, const StepType& type) {
  const int pack = elements_of_pack(functions, steps, type);
  std::string text = functions.head() + Entry(functions, steps, type, 1).text(kOneEntry);
  if (pack > 1) text += Entry(functions, steps, type, pack).text(kPackEntry);
  return text;
}

}  // namespace anabranch::cuda
