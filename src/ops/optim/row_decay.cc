// Regularization of the rows in a sparse gradient: its time does not depend on the height of the table.
#include <memory>

#include "ops/optim/update.h"

namespace anabranch::optim::row_decay_op {
namespace {

// Rows worth a task for another worker.
int64_t grain(int64_t width) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)); }

void infer_rows(InferContext& c) {
  AB_CHECK(c.in("X").kind == VarKind::kSelectedRows, InvalidArgument, "X must be SELECTED_ROWS, got a {}",
           var_kind_name(c.in("X").kind));
  check_same_dtype(c, "X", "W");
}

AB_OP(regularize_rows)
    .doc(
        "Out = the rows of the gradient X, one per id, ascending, each with its decay: x + l2_decay w + l1_decay "
        "sign(w), w the row of W. Rows missing from X do not decay.")
    .in("W", "[height, ...] float")
    .in("X", "SELECTED_ROWS of the height of W")
    .takes("X", Holds::kTensorOrRows)
    .out("Out", "like X")
    .attr<float>("l1_decay", 0.0f, "factor of the signs of the rows")
    .attr<float>("l2_decay", 0.0f, "factor of the rows")
    .infer([](InferContext& c) {
      infer_rows(c);
      c.same_as("Out", "X");
    })
    .no_grad("applies to gradients")
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In param = op.in("W"), grad = op.in("X");
      const Out out = op.out("Out");
      const T l1 = number<T>(op, "l1_decay"), l2 = number<T>(op, "l2_decay");
      return [=, merged = std::make_shared<SelectedRows>()](KernelContext& c) {
        check_rows(c.value(grad).rows(), c[param].shape());
        merge_rows(c.value(grad).rows(), merged.get());
        auto& to = c.value(out).as<SelectedRows>();
        std::swap(to, *merged);
        const int64_t width = to.value.row_elems();
        T* const g = to.value.mutable_data<T>();
        const T* const w = c[param].data<T>();
        c.parallel_for(static_cast<int64_t>(to.rows.size()), grain(width), [&](int64_t begin, int64_t end) {
          for (int64_t k = begin; k < end; ++k) {
            const T* const row = w + to.rows[static_cast<size_t>(k)] * width;
            for (int64_t j = 0; j < width; ++j) {
              T& x = g[k * width + j];
              x = x + row[j] * l2;
              x = x + static_cast<T>((row[j] > 0) - (row[j] < 0)) * l1;
            }
          }
        });
      };
    });

AB_OP(decay_rows)
    .doc("Out = W, from whose rows in X a fraction is subtracted, once for each id.")
    .in("W", "[height, ...] float")
    .in("X", "SELECTED_ROWS of the height of W; only its ids are read")
    .takes("X", Holds::kTensorOrRows)
    .in_optional("Factor", "[1] float: the fraction, instead of factor")
    .out("Out", "W, updated in place")
    .updates("W", "Out")
    .attr<float>("factor", 0.0f, "the fraction")
    .infer([](InferContext& c) {
      infer_rows(c);
      if (c.has_in("Factor")) check_numel(c, "Factor", 1);
      c.same_as("Out", "W");
    })
    .no_grad(kNoGrad)
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const In param = op.in("W"), grad = op.in("X"), factor = op.in("Factor");
      const Out out = op.out("Out");
      const T fixed = number<T>(op, "factor");
      return [=, gradients = Gradients<T>()](KernelContext& c) mutable {
        const T by = factor ? scalar<T>(c[factor]) : fixed;
        T* const w = updated<T>(c, param, out);
        gradients.read(c.value(grad), c[param]);
        gradients.update(c, Rows::kTouched, [=](int64_t i, int64_t n, const T*) {
          for (int64_t j = i; j < i + n; ++j) w[j] = w[j] - w[j] * by;
        });
      };
    });

}  // namespace
}  // namespace anabranch::optim::row_decay_op
