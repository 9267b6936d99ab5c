#include "ops/math/element_steps.h"

#include <algorithm>

#include "opdef/append_op.h"
#include "opdef/device_steps.h"
#include "opdef/op_def.h"
#include "ops/device/launch.h"
#include "ops/math/step_functions.h"

namespace anabranch::math {
namespace {

using device::ElementStep;

StepCode code_of(const std::string& function) {
  const auto* found =
      std::find_if(std::begin(kSteps), std::end(kSteps), [&](const auto& s) { return s.name == function; });
  AB_CHECK(found != std::end(kSteps), Internal, "step {} does not exist", function);
  return found->code;
}

ab_kernel kernel_of(DType dtype) {
  if (dtype == DType::kFloat16) return device::kernel_of<float16>("element_steps");
  if (dtype == DType::kBFloat16) return device::kernel_of<bfloat16>("element_steps");
  return device::kernel_of<float>("element_steps");
}

// The table of a program. Values are numbered: inputs, then the result of each line of the table.
class Lines {
 public:
  Lines(const TileProgram& program, DType dtype) : inputs_(program.inputs()), dtype_(dtype) {
    for (int k = 0; k < inputs_; ++k) value_of_.push_back(k);
    for (size_t i = 0; i < program.steps().size(); ++i) add(program, i);
    for (size_t k = 0; k < program.outs().size(); ++k) {
      const int value = value_of_[static_cast<size_t>(inputs_ + program.outs()[k])];
      lines_[static_cast<size_t>(value - inputs_)].step.out = static_cast<uint8_t>(k);
    }
  }

  std::vector<ElementStep> table() {
    std::vector<int> last_reader(static_cast<size_t>(inputs_) + lines_.size(), -1);
    for (size_t i = 0; i < lines_.size(); ++i) {
      for (const int v : lines_[i].operands) last_reader[static_cast<size_t>(v)] = static_cast<int>(i);
    }
    std::vector<int> unused;
    for (int k = fused::kMaxKept - 1; k >= 0; --k) unused.push_back(inputs_ + k);
    std::vector<int> operand_of(last_reader.size(), -1);
    for (int k = 0; k < inputs_; ++k) operand_of[static_cast<size_t>(k)] = k;
    std::vector<ElementStep> made;
    for (int i = 0; i < static_cast<int>(lines_.size()); ++i)
      made.push_back(laid(i, last_reader, &operand_of, &unused));
    return made;
  }

 private:
  struct Line {
    ElementStep step;
    std::vector<int> operands;  // indices of values
  };

  void add(const TileProgram& program, size_t i) {
    const ir::OpRef op = program.op(static_cast<int>(i));
    const DeviceStepOf* make = device_step_of(op->type);
    AB_CHECK(make != nullptr, Unsupported, "{} is not supported as a step on devices", op->type);
    check_op(*op);
    const DeviceStep step =
        (*make)(KernelArgs(find_op(op->type), *op, dtype_, {}), program.result(static_cast<int>(i)));
    std::vector<int> operands;
    for (const int k : step.operands) operands.push_back(value_of_[static_cast<size_t>(program.steps()[i].args[k])]);
    if (step.function == "sum") {
      add_sum(operands);
    } else {
      add_line(code_of(step.function), step.numbers, operands);
    }
    value_of_.push_back(inputs_ + static_cast<int>(lines_.size()) - 1);
  }

  // In the order of the kernel "sum", which rounds once.
  void add_sum(const std::vector<int>& values) {
    if (values.size() == 1) return add_line(StepCode::kCopy, {}, values);
    for (size_t k = 1; k < values.size(); ++k) {
      const int so_far = k == 1 ? values[0] : inputs_ + static_cast<int>(lines_.size()) - 1;
      add_line(StepCode::kAdd, {}, {so_far, values[k]});
      lines_.back().step.exact = k + 1 < values.size();
    }
  }

  void add_line(StepCode code, const std::array<float, 4>& numbers, const std::vector<int>& operands) {
    Line line{{}, operands};
    line.step.code = static_cast<uint8_t>(code);
    line.step.kept = line.step.out = device::kNowhere;
    line.step.count = static_cast<uint8_t>(operands.size());
    std::copy(numbers.begin(), numbers.end(), line.step.p);
    lines_.push_back(std::move(line));
  }

  // Assigns the operands of line i, and a buffer for its result if a line other than the next one reads it.
  ElementStep laid(int i, const std::vector<int>& last_reader, std::vector<int>* operand_of, std::vector<int>* unused) {
    ElementStep step = lines_[static_cast<size_t>(i)].step;
    const std::vector<int>& operands = lines_[static_cast<size_t>(i)].operands;
    for (size_t k = 0; k < operands.size(); ++k) {
      const int value = operands[k];
      if (value >= inputs_ && value == inputs_ + i - 1) {
        step.previous |= static_cast<uint8_t>(1 << k);
      } else {
        step.operands[k] = static_cast<uint8_t>((*operand_of)[static_cast<size_t>(value)]);
      }
    }
    for (const int value : operands) {
      int& at = (*operand_of)[static_cast<size_t>(value)];
      if (value < inputs_ || at < 0 || last_reader[static_cast<size_t>(value)] != i) continue;
      unused->push_back(at);
      at = -1;
    }
    const int made = inputs_ + i;
    if (last_reader[static_cast<size_t>(made)] > i + 1) {
      AB_CHECK(!unused->empty(), Unsupported, "at most {} results may be live at once", fused::kMaxKept);
      (*operand_of)[static_cast<size_t>(made)] = unused->back();
      step.kept = static_cast<uint8_t>(unused->back());
      unused->pop_back();
    }
    return step;
  }

  const int inputs_;
  const DType dtype_;
  std::vector<int> value_of_;  // of the program's operands
  std::vector<Line> lines_;
};

}  // namespace

ElementSteps::ElementSteps(const TileProgram& program, DType dtype)
    : inputs_(program.inputs()),
      outs_(program.outs().size()),
      forms_(program),
      kernel_(kernel_of(dtype)),
      steps_(Lines(program, dtype).table()) {
  AB_CHECK(outs_ <= fused::kMaxOutsOnDevices, Unsupported, "at most {} results are supported, got {}",
           fused::kMaxOutsOnDevices, outs_);
}

bool ElementSteps::run(const DeviceContext& c) {
  if (!forms_.lay(c)) return false;
  device::ElementStepsArgs a{};
  for (int k = 0; k < inputs_; ++k) {
    a.in[k] = {device::operand(c.ins[k]->tensor()), 1, 0};
    if (forms_[k].smaller) a.in[k].repeat = forms_[k].spread.repeat, a.in[k].period = forms_[k].spread.period;
  }
  for (size_t k = 0; k < outs_; ++k) a.out[k] = device::operand(c.outs[k]->as<Tensor>());
  a.steps = table_.of(c, steps_);
  a.n = c.outs[0]->tensor().numel();
  a.inputs = inputs_;
  a.outs = static_cast<int32_t>(outs_);
  a.count = static_cast<int32_t>(steps_.size());
  c.launch(kernel_.of(c, steps_), a);
  return true;
}

}  // namespace anabranch::math
