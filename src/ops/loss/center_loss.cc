// Pulls samples to the centers of their classes, and centers to their samples.
#include <algorithm>
#include <memory>
#include <vector>

#include "ops/kernels/flat_loop.h"
#include "ops/kernels/ids.h"
#include "ops/kernels/sums.h"
#include "ops/loss/class_rows.h"

namespace anabranch::loss::center_loss_op {
namespace {

void infer_center(InferContext& c) {
  check_class_table(c, "X", "Centers");
  const Shape& x = c.in("X").shape;
  check_number_per_row(c, "Label", x[0]);
  check_ids_dtype(c, "Label");
  check_numel(c, "CenterUpdateRate", 1);
  check_same_dtype(c, "CenterUpdateRate", "X");
  c.same_as("CentersOut", "Centers");
  c.same_shape("SampleCenterDiff", "X");
  c.set_out("Loss", Shape{x[0], 1}, c.in("X").dtype);
  c.share_lod("Loss", "X");
}

// Each center moves by rate * sum of its samples' distances / (1 + their number).
template <class T>
void move_centers(const T* diff, const int64_t* label, int64_t n, int64_t width, T rate, std::vector<int64_t>* counts,
                  std::vector<T>* moves, T* centers) {
  std::fill(counts->begin(), counts->end(), 0);
  std::fill(moves->begin(), moves->end(), T{0});
  for (int64_t i = 0; i < n; ++i) {
    ++(*counts)[static_cast<size_t>(label[i])];
    T* move = moves->data() + label[i] * width;
    const T* own = diff + i * width;
    for (int64_t k = 0; k < width; ++k) move[k] += own[k];
  }
  for (size_t j = 0; j < counts->size(); ++j) {
    for (size_t k = 0; (*counts)[j] > 0 && k < static_cast<size_t>(width); ++k) {
      const size_t at = j * static_cast<size_t>(width) + k;
      centers[at] += rate * (*moves)[at] / static_cast<T>(1 + (*counts)[j]);
    }
  }
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  struct Scratch {
    Tensor label;
    std::vector<int64_t> counts;
    std::vector<T> moves;
  };
  return [=, update = op.attr<bool>("need_update"), x = op.in("X"), label = op.in("Label"), centers = op.in("Centers"),
          rate = op.in("CenterUpdateRate"), centers_out = op.out("CentersOut"), diff = op.out("SampleCenterDiff"),
          loss = op.out("Loss"), scratch = std::make_shared<Scratch>()](KernelContext& c) {
    const int64_t n = c[x].rows(), width = c[x].row_elems(), classes = c[centers].rows();
    const T *from = c[x].data<T>(), *center = c[centers].data<T>();
    T *d = c[diff].mutable_data<T>(), *to = c[loss].mutable_data<T>(), *moved = c[centers_out].mutable_data<T>();
    const int64_t* y = as_int64(c[label], &scratch->label);
    check_ids("Label", y, n, classes);
    c.parallel_for(n, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)), [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T *sample = from + i * width, *own = center + y[i] * width;
        T* gap = d + i * width;
        for (int64_t k = 0; k < width; ++k) gap[k] = sample[k] - own[k];
        to[i] = sum_of<T>(width, [=](int64_t k) { return gap[k] * gap[k]; }) / 2;
      }
    });
    if (moved != center) std::copy(center, center + c[centers].numel(), moved);
    if (!update) return;
    scratch->counts.resize(static_cast<size_t>(classes));
    scratch->moves.resize(static_cast<size_t>(classes * width));
    move_centers(d, y, n, width, *c[rate].data<T>(), &scratch->counts, &scratch->moves, moved);
  };
};

AB_OP(center_loss)
    .doc(
        "Loss[i] = |X[i] - Centers[Label[i]]|^2 / 2. Each center moves by CenterUpdateRate times the sum of its "
        "samples' distances / (1 + their number).")
    .source("Wen et al., ECCV 2016, doi:10.1007/978-3-319-46478-7_31")
    .in("X", "[N, D] float")
    .in("Label", "[N, 1] int64 below the number of centers")
    .in("Centers", "[clusters, D]")
    .in("CenterUpdateRate", "[1]")
    .out("CentersOut", "Centers, updated in place")
    .out("SampleCenterDiff", "[N, D]: X - Centers[Label]")
    .out("Loss", "[N, 1]; with the LoD of X")
    .attr<int32_t>("cluster_num", 0, "ignored: Centers gives the number of centers")
    .attr<bool>("need_update", true, "moves the centers")
    .dtype_of_input("X")
    .infer(infer_center)
    .grad_reads({"X"}, {"SampleCenterDiff"})
    .grad_from({"Loss"})
    .grad_to({"X"})
    .cpu<float, double>(forward);

AB_GRAD(center_loss)
    .doc("X@GRAD = Loss@GRAD SampleCenterDiff, row by row.")
    .dtype_of_input("X")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, 2);
      check_same(c, "X", "SampleCenterDiff");
      check_numel(c, "Loss@GRAD", c.in("X").shape[0]);
      check_same_dtype(c, "Loss@GRAD", "X");
      grad_as(c, "X@GRAD", "X");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [diff = op.in("SampleCenterDiff"), dloss = op.in("Loss@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        const int64_t n = c[diff].rows(), width = c[diff].row_elems();
        const T *d = c[diff].data<T>(), *g = c[dloss].data<T>();
        T* to = c[dx].mutable_data<T>();
        c.parallel_each(n, std::max<int64_t>(1, kCheapGrain / std::max<int64_t>(1, width)), [=](int64_t i) {
          for (int64_t k = i * width; k < (i + 1) * width; ++k) to[k] = g[i] * d[k];
        });
      };
    });

}  // namespace
}  // namespace anabranch::loss::center_loss_op
