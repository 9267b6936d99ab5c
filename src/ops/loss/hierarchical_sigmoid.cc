// A class is a path of binary decisions from the root of a tree: a sample costs one logistic loss per node on its path
// instead of one per class.
#include <bit>
#include <memory>

#include "ops/declare/attr_checks.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/ids.h"
#include "ops/loss/class_rows.h"
#include "ops/loss/logistic_tiles.h"

namespace anabranch::loss::hierarchical_sigmoid_op {
namespace {

constexpr double kMaxScore = 40;  // scores are clipped to [-40, 40]

// The paths of a batch: from tables, or those of a complete binary tree, in which class k is the leaf k + classes,
// inner node n has the children 2 n and 2 n + 1, and the root is 1.
struct Paths {
  int64_t classes, length;
  const int64_t *label, *table, *code;  // table and code are null for the complete tree

  static int64_t longest(int64_t classes_in) { return std::bit_width(static_cast<uint64_t>(classes_in - 1)); }

  // Calls fn(index on the path, row of the table, decision) for sample i.
  template <class Fn> void each(int64_t i, Fn&& fn) const {
    if (table) {
      for (int64_t k = 0; k < length && table[i * length + k] >= 0; ++k) {
        fn(k, table[i * length + k], code[i * length + k] != 0);
      }
      return;
    }
    const auto leaf = static_cast<uint64_t>(label[i] + classes);
    const int64_t steps = std::bit_width(leaf) - 1;
    for (int64_t k = 0; k < steps; ++k) fn(k, static_cast<int64_t>(leaf >> (k + 1)) - 1, (leaf >> k & 1) != 0);
  }
};

struct PathSlots {
  int64_t classes;
  In label, table, code;
  explicit PathSlots(const KernelArgs& op)
      : classes(op.attr<int32_t>("num_classes")),
        label(op.in("Label")),
        table(op.in("PathTable")),
        code(op.in("PathCode")) {}

  Paths read(const KernelContext& c, int64_t rows, Tensor (&scratch)[3]) const {
    Paths p{classes, Paths::longest(classes), nullptr, nullptr, nullptr};
    if (!table) {
      p.label = as_int64(c[label], &scratch[0]);
      check_ids("Label", p.label, c[label].numel(), classes);
      return p;
    }
    p.table = as_int64(c[table], &scratch[1]);
    p.code = as_int64(c[code], &scratch[2]);
    p.length = c[table].shape()[1];
    for (int64_t i = 0; i < c[table].numel(); ++i) {
      AB_CHECK(p.table[i] < rows, InvalidArgument, "PathTable of sample {} must be below {}, got {}", i / p.length,
               rows, p.table[i]);
    }
    return p;
  }
};

int64_t path_length(const InferContext& c) {
  return c.has_in("PathTable") ? c.in("PathTable").shape[1] : Paths::longest(c.attr<int32_t>("num_classes"));
}

void check_tree(const InferContext& c) {
  check_class_table(c, "X", "W");
  check_ids_dtype(c, "Label");
  const int64_t n = c.in("X").shape[0], rows = c.in("W").shape[0], classes = c.attr<int32_t>("num_classes");
  check_number_per_row(c, "Label", n);
  AB_CHECK(c.has_in("PathTable") == c.has_in("PathCode"), InvalidArgument,
           "PathTable and PathCode must be given together");
  if (!c.has_in("PathTable")) {
    AB_CHECK(rows == kUnknown || rows >= classes - 1, ShapeMismatch, "W must have {} rows for {} classes, got {}",
             classes - 1, classes, rows);
    return;
  }
  for (const char* slot : {"PathTable", "PathCode"}) {
    check_ids_dtype(c, slot);
    check_rank(c, slot, 2, 2);
    check_equal_rows(c, slot, "X");
  }
  check_same_shape(c, "PathTable", "PathCode");
}

// to[i] += the sum of softplus over row i of the scores.
void add_softplus(const float* scores, int64_t rows, int64_t length, float* to) {
  each_tile(
      0, rows * length, simd::softplus, [=](int64_t k) { return scores[k]; },
      [=](int64_t first, int64_t count, const float* t) {
        int64_t row = first / length, at = first % length;
        for (int64_t k = 0; k < count; ++k) {
          to[row] += t[k];
          if (++at == length) at = 0, ++row;
        }
      });
}
void add_softplus(const double* scores, int64_t rows, int64_t length, double* to) {
  for (int64_t k = 0; k < rows * length; ++k) to[k / length] += softplus(scores[k]);
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const PathSlots slots(op);
  struct Scratch {
    Tensor ids[3];
  };
  return [=, x = op.in("X"), w = op.in("W"), bias = op.in("Bias"), out = op.out("Out"), pre = op.out("PreOut"),
          scratch = std::make_shared<Scratch>()](KernelContext& c) {
    const int64_t n = c[x].rows(), width = c[x].row_elems();
    const Paths paths = slots.read(c, c[w].rows(), scratch->ids);
    const ClassTable<T> table{c[w].data<T>(), bias ? c[bias].data<T>() : nullptr, width};
    const T* from = c[x].data<T>();
    T *to = c[out].mutable_data<T>(), *scores = c[pre].mutable_data<T>();
    std::fill(scores, scores + c[pre].numel(), T{0});
    const T limit = static_cast<T>(kMaxScore);
    c.parallel_for(n, kMathGrain / (width + 1) + 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[i] = 0;
        paths.each(i, [&](int64_t k, int64_t row, bool yes) {
          const T s = std::clamp(table.score(from + i * width, row), -limit, limit);
          scores[i * paths.length + k] = s;
          to[i] -= yes ? s : T{0};
        });
      }
      // As in Fluid 1.8.5, missing steps of a shorter path count with score 0.
      add_softplus(scores + begin * paths.length, end - begin, paths.length, to + begin);
    });
  };
};

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  const PathSlots slots(op);
  struct Scratch {
    Tensor ids[3];
  };
  return [=, sparse = op.attr<bool>("is_sparse"), x = op.in("X"), w = op.in("W"), pre = op.in("PreOut"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dw = op.out("W@GRAD"), dbias = op.out("Bias@GRAD"),
          scratch = std::make_shared<Scratch>()](KernelContext& c) {
    const int64_t n = c[x].rows(), width = c[x].row_elems();
    const Paths paths = slots.read(c, c[w].rows(), scratch->ids);
    int64_t steps = 0;
    for (int64_t i = 0; i < n; ++i) paths.each(i, [&](int64_t, int64_t, bool) { ++steps; });
    ScoreGradients<T> to({c[w].data<T>(), nullptr, width}, c[w].rows());
    if (c.needs(dx)) to.set_dx(&c[dx]);
    if (c.needs(dw)) to.set_dtable(&c.value(dw), sparse, steps);
    if (c.needs(dbias)) to.set_dbias(&c[dbias]);
    const T *from = c[x].data<T>(), *scores = c[pre].data<T>(), *g = c[dout].data<T>();
    for (int64_t i = 0; i < n; ++i) {
      paths.each(i, [&](int64_t k, int64_t row, bool yes) {
        const T slope = logistic(scores[i * paths.length + k]) - (yes ? T{1} : T{0});
        to.add(i, from + i * width, row, g[i] * slope);
      });
    }
  };
};

AB_OP(hierarchical_sigmoid)
    .doc(
        "Out = the sum of ln(1 + e^s) - c s over the path of the class, s = X . W[node] + Bias[node], c 1 for yes. "
        "Without tables the tree is complete and binary.")
    .source("Morin & Bengio, AISTATS 2005")
    .in("X", "[N, D] float")
    .in("W", "[num_classes - 1, D], or one row per node of the custom tree")
    .in("Label", "[N, 1] int64 below num_classes")
    .in_optional("PathTable", "[N, L] int64: rows of W on the path of each sample; negative: after its end")
    .in_optional("PathCode", "[N, L] int64: 1 where the decision is yes")
    .in_optional("Bias", "one number per row of W")
    .out("Out", "[N, 1]; with the LoD of X")
    .out_intermediate("PreOut", "[N, length of the longest path]: the scores, 0 after the end")
    .out_named_only("W_Out", "like W: Fluid's programs with a sparse gradient name it")
    .with(table_attrs)
    .attr<int32_t>("num_classes", 2, "number of classes, at least 2", at_least<int32_t>("num_classes", 2))
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_tree(c);
      const Meta& x = c.in("X");
      c.set_out("Out", Shape{x.shape[0], 1}, x.dtype);
      c.share_lod("Out", "X");
      c.set_out("PreOut", Shape{x.shape[0], path_length(c)}, x.dtype);
      if (c.has_out("W_Out")) c.same_as("W_Out", "W");
    })
    .grad_reads({"X", "W", "Label", "PathTable", "PathCode", "Bias"}, {"PreOut"})
    .grad_to({"X", "W", "Bias"})
    .cpu<float, double>(forward);

AB_GRAD(hierarchical_sigmoid)
    .doc("Gradients of hierarchical_sigmoid; a sparse gradient of W has one row per step of each path.")
    .dtype_of_input("X")
    .grad_lod("X@GRAD", "X")
    .infer([](InferContext& c) { infer_table_gradients(c, {"W@GRAD"}); })
    .cpu<float, double>(backward);

}  // namespace
}  // namespace anabranch::loss::hierarchical_sigmoid_op
