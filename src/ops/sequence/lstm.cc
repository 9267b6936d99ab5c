// Long short-term memory over sequences, with or without a projection of the hidden state.
#include "ops/sequence/lstm.h"
#include "ops/kernels/work.h"

#include "base/flags.h"

namespace anabranch::sequence {

LstmDims check_lstm(const InferContext& c) {
  for (const char* slot : {"Weight", "Bias"}) check_tensor(c, slot);
  check_rank(c, "Weight", 2, 2);
  check_same_dtype(c, "Bias", "Weight");
  const Shape& w = c.in("Weight").shape;
  AB_CHECK(w[1] == kUnknown || w[1] % 4 == 0, ShapeMismatch, "{}: Weight is {}, its width is no multiple of 4",
           op_name(c), w.str());
  const LstmDims dims{w[1] == kUnknown ? kUnknown : w[1] / 4, w[0]};
  if (c.op().type.starts_with("lstmp")) {
    check_tensor(c, "ProjWeight");
    check_rank(c, "ProjWeight", 2, 2);
    check_same_dtype(c, "ProjWeight", "Weight");
    const Shape wanted{dims.d, dims.p};
    AB_CHECK(compatible(c.in("ProjWeight").shape, wanted), ShapeMismatch, "{}: ProjWeight is {}, Weight is {}",
             op_name(c), c.in("ProjWeight").shape.str(), w.str());
  } else {
    AB_CHECK(dims.d == kUnknown || dims.p == kUnknown || dims.d == dims.p, ShapeMismatch,
             "{}: Weight is {}, expected [D, 4 D]", op_name(c), w.str());
  }
  check_numel(c, "Bias", dims.d == kUnknown ? kUnknown : (c.attr<bool>("use_peepholes") ? 7 : 4) * dims.d);
  AB_CHECK(c.has_in("H0") == c.has_in("C0"), InvalidArgument, "{}: H0 and C0 are given both or not at all", op_name(c));
  return dims;
}

OpDef& lstm_attrs(OpDef& def, bool projected) {
  act_attr(def, "gate_activation", "sigmoid", "of the gates");
  act_attr(def, "cell_activation", "tanh", "of the cell on its way to the hidden state");
  act_attr(def, "candidate_activation", "tanh", "of the candidate");
  def.attr<bool>("use_peepholes", true, "the cell state takes part in the gates")
      .attr<bool>("is_reverse", false, "from the last row of each sequence to the first");
  if (!projected) return def;
  act_attr(def, "proj_activation", "tanh", "of the projection");
  return def.attr<float>("cell_clip", 0.0f, "the cell is cut to [-cell_clip, cell_clip]; not when 0")
      .attr<float>("proj_clip", 0.0f, "the projection is cut to [-proj_clip, proj_clip]; not when 0");
}

namespace {

constexpr const char* kPlain =
    "i, f = g(x_i + r W_i + p_i c), g(x_f + r W_f + p_f c), c' = f c + i k(x_c + r W_c), o = g(x_o + r W_o + p_o c'), "
    "h = o s(c'), where r = h and c come from the step before, along each sequence.";
constexpr const char* kProjected = "As lstm, where r = q(h ProjWeight) goes from step to step instead of h.";

void infer_forward(InferContext& c) {
  const LstmDims dims = check_lstm(c);
  check_tensor(c, "Input");
  check_rank(c, "Input", 2, 2);
  check_same_dtype(c, "Input", "Weight");
  const Shape& x = c.in("Input").shape;
  AB_CHECK(compatible(x, Shape{kUnknown, c.in("Weight").shape[1]}), ShapeMismatch, "{}: Input is {}, Weight is {}",
           op_name(c), x.str(), c.in("Weight").shape.str());
  if (c.runtime()) lod_of(c, "Input");
  check_first(c, "H0", "Input", dims.p);
  check_first(c, "C0", "Input", dims.d);
  const DType dtype = c.in("Input").dtype;
  const bool projected = c.op().type == "lstmp";
  const char* result = projected ? "Projection" : "Hidden";
  c.set_out(result, Shape{x[0], dims.p}, dtype);
  c.set_out("Cell", Shape{x[0], dims.d}, dtype);
  c.set_out("BatchGate", x, dtype);
  c.set_out("BatchCellPreAct", Shape{x[0], dims.d}, dtype);
  if (projected) c.set_out("BatchHidden", Shape{x[0], dims.d}, dtype);
  c.share_lod(result, "Input");
  c.share_lod("Cell", "Input");
}

void infer_backward(InferContext& c) {
  const LstmDims dims = check_lstm(c);
  const bool projected = c.op().type == "lstmp_grad";
  const std::string result = projected ? "Projection" : "Hidden";
  check_tensor(c, result);
  check_rank(c, result, 2, 2);
  if (c.runtime()) lod_of(c, result);
  const int64_t rows = c.in(result).shape[0];
  check_first(c, "H0", result.c_str(), dims.p);
  check_first(c, "C0", result.c_str(), dims.d);
  const auto check_rows = [&](const std::string& slot, int64_t width) {
    if (!c.has_in(slot)) return;
    check_same_dtype(c, slot, "Weight");
    check_shape(c, slot, Shape{rows, width});
  };
  check_rows(result, dims.p);
  check_rows(result + "@GRAD", dims.p);
  check_rows("BatchGate", dims.d == kUnknown ? kUnknown : 4 * dims.d);
  for (const char* slot : {"Cell", "Cell@GRAD", "BatchCellPreAct"}) check_rows(slot, dims.d);
  if (projected) check_rows("BatchHidden", dims.d);
  grad_as(c, "Input@GRAD", "BatchGate");
  for (const char* slot : {"H0", "C0", "Weight", "Bias"}) grad_as(c, std::string(slot) + "@GRAD", slot);
  if (projected) grad_as(c, "ProjWeight@GRAD", "ProjWeight");
}

// All but Input.
std::vector<const char*> inputs(bool projected) {
  if (projected) return {"H0", "C0", "Weight", "ProjWeight", "Bias"};
  return {"H0", "C0", "Weight", "Bias"};
}

std::vector<const char*> outputs(bool projected) {
  if (projected) return {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"};
  return {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"};
}

void make_grad(GradContext& g, bool projected) {
  auto op = g.op(projected ? "lstmp_grad" : "lstm_grad");
  for (const char* slot : inputs(projected)) op.in(slot, g.in(slot));
  for (const char* slot : outputs(projected)) op.in(slot, g.out(slot));
  const char* result = outputs(projected)[0];
  op.in(std::string(result) + "@GRAD", g.dout(result));
  if (!projected) op.in("Input", g.in("Input"));
  if (!Flags::exact_fluid()) op.in("Cell@GRAD", g.dout("Cell"));  // 1.8.5 takes it for zero
  op.out("Input@GRAD", g.din("Input"));
  for (const char* slot : inputs(projected)) op.out(std::string(slot) + "@GRAD", g.din(slot));
}

OpDef& declare_forward(bool projected) {
  OpDef& def = declare_op(projected ? "lstmp" : "lstm", __FILE__)
                   .doc(projected ? kProjected : kPlain)
                   .source(projected ? "https://arxiv.org/abs/1402.1128" : "https://arxiv.org/abs/1308.0850")
                   .in("Input", "[rows, 4 D] float with sequences: x_c, x_i, x_f, x_o")
                   .in_optional("H0", "r before each sequence, [sequences, width of r]; zeros when absent")
                   .in_optional("C0", "[sequences, D], c before each sequence; together with H0")
                   .in("Weight", "[width of r, 4 D]: W_c, W_i, W_f, W_o side by side");
  if (projected) def.in("ProjWeight", "[D, P]").out("Projection", "[rows, P], r, with the sequences of Input");
  def.in("Bias", "[1, 4 D], added to each x; [1, 7 D] with p_i, p_f, p_o behind it");
  if (!projected) def.out("Hidden", "[rows, D], h, with the sequences of Input");
  def.out("Cell", "[rows, D], c', with the sequences of Input")
      .out_intermediate("BatchGate", "[rows, 4 D], candidate and gates in the order of steps")
      .out_intermediate("BatchCellPreAct", "[rows, D], c' in the order of steps");
  if (projected) def.out_intermediate("BatchHidden", "[rows, D], h in the order of steps");
  if (!projected) def.flops(recurrent_flops);
  return lstm_attrs(def, projected)
      .infer(infer_forward)
      .grad([projected](GradContext& g) { make_grad(g, projected); })
      .cpu<float, double>(
          [](auto tag, const KernelArgs& op) { return lstm_forward<typename decltype(tag)::type>(op); });
}

OpDef& declare_backward(bool projected) {
  const char* as_forward = projected ? "as of lstmp" : "as of lstm";
  OpDef& def = declare_op(projected ? "lstmp_grad" : "lstm_grad", __FILE__)
                   .doc(projected ? "Gradients of lstmp." : "Gradients of lstm.");
  for (const char* slot : inputs(projected)) {
    const bool optional = slot[1] == '0';
    optional ? def.in_optional(slot, as_forward) : def.in(slot, as_forward);
    def.out_optional(std::string(slot) + "@GRAD", "as " + std::string(slot));
  }
  for (const char* slot : outputs(projected)) def.in(slot, as_forward);
  if (!projected) def.in_optional("Input", "not read");
  def.in(std::string(outputs(projected)[0]) + "@GRAD", "gradient of the result")
      .in_optional("Cell@GRAD", "as Cell")
      .out_optional("Input@GRAD", "as Input");
  return lstm_attrs(def, projected)
      .dtype_of_input("Weight")
      .infer(infer_backward)
      .no_grad(kOnce)
      .cpu<float, double>(
          [](auto tag, const KernelArgs& op) { return lstm_backward<typename decltype(tag)::type>(op); });
}

[[maybe_unused]] OpDef& lstm = declare_forward(false);
[[maybe_unused]] OpDef& lstm_grad = declare_backward(false);
[[maybe_unused]] OpDef& lstmp = declare_forward(true);
[[maybe_unused]] OpDef& lstmp_grad = declare_backward(true);

}  // namespace
}  // namespace anabranch::sequence
