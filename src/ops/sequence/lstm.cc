// LSTM over sequences, with or without a projection of the hidden state.
#include "ops/sequence/lstm.h"

#include "base/flags.h"
#include "ops/kernels/work.h"

namespace anabranch::sequence {

LstmDims check_lstm(const InferContext& c) {
  check_rank(c, "Weight", 2, 2);
  check_same_dtype(c, "Bias", "Weight");
  const Shape& w = c.in("Weight").shape;
  AB_CHECK(w[1] == kUnknown || w[1] % 4 == 0, ShapeMismatch, "the width of Weight must be a multiple of 4, got {}",
           w.str());
  const LstmDims dims{w[1] == kUnknown ? kUnknown : w[1] / 4, w[0]};
  if (c.op().type.starts_with("lstmp")) {
    check_rank(c, "ProjWeight", 2, 2);
    check_same_dtype(c, "ProjWeight", "Weight");
    check_shape(c, "ProjWeight", Shape{dims.d, dims.p});
  } else {
    AB_CHECK(dims.d == kUnknown || dims.p == kUnknown || dims.d == dims.p, ShapeMismatch,
             "Weight must be [D, 4 D], got {}", w.str());
  }
  check_numel(c, "Bias", dims.d == kUnknown ? kUnknown : (c.attr<bool>("use_peepholes") ? 7 : 4) * dims.d);
  AB_CHECK(c.has_in("H0") == c.has_in("C0"), InvalidArgument, "H0 and C0 must be given together");
  return dims;
}

namespace {

constexpr const char* kPlain =
    "i, f = g(x_i + r W_i + p_i c), g(x_f + r W_f + p_f c), c' = f c + i k(x_c + r W_c), o = g(x_o + r W_o + p_o c'), "
    "h = o s(c'), where r = h and c come from the previous step, along each sequence.";
constexpr const char* kProjected = "Like lstm, with r = q(h ProjWeight) passed from step to step instead of h.";

void infer_forward(InferContext& c) {
  const LstmDims dims = check_lstm(c);
  check_rank(c, "Input", 2, 2);
  check_same_dtype(c, "Input", "Weight");
  const Shape& x = c.in("Input").shape;
  check_shape(c, "Input", Shape{kUnknown, c.in("Weight").shape[1]});
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

// See grad_reads; Cell@GRAD is omitted for exact Fluid 1.8.5 results, which treat it as zero.
void make_grad(GradContext& g) {
  const OpDef& def = find_op(g.forward().type);
  GradOp op = g.op(def.type() + "_grad");
  for (const auto& slot : def.grad_reads().ins) op.in(slot, g.in(slot));
  for (const auto& slot : def.grad_reads().outs) op.in(slot, g.out(slot));
  for (const auto& slot : def.grad_reads().from) {
    if (slot != "Cell" || !Flags::exact_fluid()) op.in(slot + "@GRAD", g.dout(slot));
  }
  for (const auto& slot : def.grad_reads().to) op.out(slot + "@GRAD", g.din(slot));
}

void lstm_attrs(OpDef& def, bool projected) {
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  act_attr(def, "cell_activation", "tanh", "activation of the cell for the hidden state");
  act_attr(def, "candidate_activation", "tanh", "activation of the candidate");
  def.attr<bool>("use_peepholes", true, "adds peepholes: the gates read the cell state")
      .attr<bool>("is_reverse", false, "processes each sequence from its last row to its first");
  if (!projected) return;
  act_attr(def, "proj_activation", "tanh", "activation of the projection");
  def.attr<float>("cell_clip", 0.0f, "clips the cell to [-cell_clip, cell_clip]; 0: no clipping")
      .attr<float>("proj_clip", 0.0f, "clips the projection to [-proj_clip, proj_clip]; 0: no clipping");
}

void declare_lstm(bool projected) {
  OpDef& def = declare_op(projected ? "lstmp" : "lstm", __FILE__)
                   .doc(projected ? kProjected : kPlain)
                   .source(projected ? "https://arxiv.org/abs/1402.1128" : "https://arxiv.org/abs/1308.0850")
                   .in("Input", "[rows, 4 D] float with LoD: x_c, x_i, x_f, x_o")
                   .in_optional("H0", "r before each sequence, [sequences, width of r]; zeros if not given")
                   .in_optional("C0", "[sequences, D], c before each sequence; together with H0")
                   .in("Weight", "[width of r, 4 D]: [W_c, W_i, W_f, W_o]");
  if (projected) def.in("ProjWeight", "[D, P]").out("Projection", "[rows, P], r, with the LoD of Input");
  def.in("Bias", "[1, 4 D], added to each x; [1, 7 D] with p_i, p_f, p_o after them");
  if (!projected) def.out("Hidden", "[rows, D], h, with the LoD of Input");
  def.out("Cell", "[rows, D], c', with the LoD of Input")
      .out_intermediate("BatchGate", "[rows, 4 D], candidate and gates in the order of steps")
      .out_intermediate("BatchCellPreAct", "[rows, D], c' in the order of steps");
  if (projected) def.out_intermediate("BatchHidden", "[rows, D], h in the order of steps");
  if (!projected) def.flops(recurrent_flops);
  lstm_attrs(def, projected);
  def.infer(infer_forward);
  if (projected) {
    def.grad_reads({"H0", "C0", "Weight", "ProjWeight", "Bias"},
                   {"Projection", "Cell", "BatchGate", "BatchCellPreAct", "BatchHidden"});
  } else {
    def.grad_reads({"H0", "C0", "Weight", "Bias", "Input"}, {"Hidden", "Cell", "BatchGate", "BatchCellPreAct"});
  }
  def.grad(make_grad).with(lstm_forward);
  OpDef& back = declare_gradient(def.type().c_str(), __FILE__);
  if (!projected) back.in_optional("Input", "ignored");
  back.in_optional("Cell@GRAD", "like Cell; zeros if not given")
      .dtype_of_input("Weight")
      .infer(infer_backward)
      .with(lstm_backward);
}

void declare_both() {
  declare_lstm(false);
  declare_lstm(true);
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::sequence
