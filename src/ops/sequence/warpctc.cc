// Connectionist temporal classification: the negative log-likelihood of labels whose alignment with the rows is
// unknown.
#include <algorithm>

#include "ops/kernels/outputs.h"
#include "ops/sequence/ctc.h"
#include "ops/sequence/spans.h"

namespace anabranch::sequence::warpctc_op {
namespace {

constexpr int64_t kGrain = 4096;

// Row t of sequence s: after its first row, or in a batch [rows, batch, classes] interleaved with the others.
struct Frames {
  Spans spans;
  bool dense;
  int64_t batch;
  int64_t row(int64_t s, int64_t t) const { return dense ? t * batch + s : spans.begin(s) + t; }
  int64_t stride() const { return dense ? batch : 1; }
};

bool dense(const InferContext& c) { return c.has_in("LogitsLength"); }

void check_labels(const InferContext& c, int64_t batch) {
  check_ids_dtype(c, "Label");
  check_rank(c, "Label", 2, 2);
  AB_CHECK(c.has_in("LabelLength") == dense(c), InvalidArgument, "LogitsLength and LabelLength must be given together");
  if (dense(c)) {
    check_lengths(c, "LabelLength", batch);
    check_shape(c, "Label", Shape{batch, kUnknown});
  } else {
    check_shape(c, "Label", Shape{kUnknown, 1});
  }
}

struct Extents {
  int64_t rows, batch;  // rows of the longest sequence
};

Extents check_logits(const InferContext& c) {
  check_rank(c, "Logits", dense(c) ? 3 : 2, dense(c) ? 3 : 2);
  const Shape& x = c.in("Logits").shape;
  if (dense(c)) {
    check_lengths(c, "LogitsLength", x[1]);
    return {x[0], x[1]};
  }
  if (!c.runtime()) return {kUnknown, kUnknown};
  Offsets outer;
  const Offsets& o = outer_rows(lod_of(c, "Logits"), &outer);
  int64_t longest = 0;
  for (size_t s = 1; s < o.size(); ++s) longest = std::max(longest, o[s] - o[s - 1]);
  return {longest, count(o)};
}

void infer(InferContext& c) {
  const auto [rows, batch] = check_logits(c);
  check_labels(c, batch);
  const Shape& x = c.in("Logits").shape;
  const int64_t classes = x[x.rank() - 1], blank = c.attr<int32_t>("blank");
  AB_CHECK(blank >= 0 && (classes < 0 || blank < classes), InvalidArgument,
           "blank must be a class of Logits {}, got {}", x.str(), blank);
  if (c.runtime() && !dense(c)) {
    const int64_t labeled = count(lod_of(c, "Label").front());
    AB_CHECK(labeled == batch, InvalidArgument,
             "Logits and Label must have the same number of sequences, got {} and {}", batch, labeled);
  }
  c.set_out("WarpCTCGrad", Shape{rows, batch, classes}, c.in("Logits").dtype);
  c.set_out("Loss", Shape{batch, 1}, c.in("Logits").dtype);
}

struct Scratch {
  Offsets outer, outer_labels;  // rows of the outermost sequences
  Tensor lengths, label_lengths, labels;
  std::vector<double> log_sums, lattice;
  std::vector<int64_t> rows_at, lattice_at;  // where each sequence starts in them
};

Frames frames_of(const KernelContext& c, In logits, In length, Scratch* scratch) {
  const Shape& x = c[logits].shape();
  if (!length) {
    const Spans spans(outer_rows(c[logits].lod(), &scratch->outer));
    return {spans, false, spans.count()};
  }
  return {{"LogitsLength", as_int64(c[length], &scratch->lengths), x[1], x[0]}, true, x[1]};
}

template <class T> struct Ctc {
  const T* logits;
  const int64_t* labels;
  int64_t classes, blank;
  const Frames& frames;
  const Spans& label_spans;
  T *slopes, *loss;

  void run(Scratch* scratch, int64_t s) const {
    const int64_t rows = frames.spans.rows(s), width = frames.batch * classes;
    double* log_sums = scratch->log_sums.data() + scratch->rows_at[static_cast<size_t>(s)];
    double* numbers = scratch->lattice.data() + scratch->lattice_at[static_cast<size_t>(s)];
    const CtcLattice<T> lattice(logits + frames.row(s, 0) * classes, frames.stride() * classes, log_sums, rows,
                                labels + label_spans.begin(s), label_spans.rows(s), blank);
    T* to = slopes + s * classes;
    loss[s] = T{0};
    const bool fits = rows > 0 && lattice.rows_needed() <= rows;
    for (int64_t t = 0; t < rows; ++t) {
      if (fits) {
        log_sums[t] = softmax_row(logits + frames.row(s, t) * classes, to + t * width, classes);
      } else {
        std::fill(to + t * width, to + t * width + classes, T{0});
      }
    }
    if (!fits) return;
    const double log_sum = lattice.forward(numbers);
    loss[s] = static_cast<T>(-log_sum);
    lattice.backward(numbers, log_sum, [&](int64_t t, int64_t state, double share) {
      T& slope = to[t * width + lattice.class_of(state)];
      slope = static_cast<T>(slope - share);
    });
  }
};

// Memory of each sequence: one number per row, and its lattice.
void plan(const Spans& frames, const Spans& labels, Scratch* scratch) {
  scratch->rows_at.assign(1, 0);
  scratch->lattice_at.assign(1, 0);
  for (int64_t s = 0; s < frames.count(); ++s) {
    scratch->rows_at.push_back(scratch->rows_at.back() + frames.rows(s));
    const CtcCells cells{frames.rows(s), 2 * labels.rows(s) + 1};
    scratch->lattice_at.push_back(scratch->lattice_at.back() + cells.count());
  }
  scratch->log_sums.resize(static_cast<size_t>(scratch->rows_at.back()));
  scratch->lattice.resize(static_cast<size_t>(scratch->lattice_at.back()));
}

void check_classes(const Spans& spans, const int64_t* labels, int64_t classes) {
  for (int64_t s = 0; s < spans.count(); ++s) {
    check_ids("Label", labels + spans.begin(s), spans.rows(s), classes);
  }
}

template <class T> Kernel forward(const KernelArgs& op) {
  const In logits = op.in("Logits"), label = op.in("Label");
  const In length = op.in("LogitsLength"), label_length = op.in("LabelLength");
  const int64_t blank = op.attr<int32_t>("blank");
  return [=, slopes = op.out("WarpCTCGrad"), loss = op.out("Loss"),
          scratch = std::make_shared<Scratch>()](KernelContext& c) {
    const Frames frames = frames_of(c, logits, length, scratch.get());
    const Shape& y = c[label].shape();
    const Spans labels = length ? Spans("LabelLength", as_int64(c[label_length], &scratch->label_lengths), y[0], y[1])
                                : Spans(outer_rows(c[label].lod(), &scratch->outer_labels));
    const int64_t classes = c[slopes].shape()[2], rows = c[slopes].shape()[0], batch = frames.batch;
    const Ctc<T> ctc{c[logits].data<T>(),
                     as_int64(c[label], &scratch->labels),
                     classes,
                     blank,
                     frames,
                     labels,
                     c[slopes].mutable_data<T>(),
                     c[loss].mutable_data<T>()};
    check_classes(labels, ctc.labels, classes);
    plan(frames.spans, labels, scratch.get());
    c.parallel_each(batch, kGrain / std::max<int64_t>(1, rows * classes) + 1, [&](int64_t s) {
      ctc.run(scratch.get(), s);
      for (int64_t t = frames.spans.rows(s); t < rows; ++t) {
        T* row = ctc.slopes + (t * batch + s) * classes;
        std::fill(row, row + classes, T{0});
      }
    });
  };
}

template <class T> Kernel gradient(const KernelArgs& op) {
  const In slopes = op.in("WarpCTCGrad"), logits = op.in("Logits"), length = op.in("LogitsLength");
  const In dloss = op.in("Loss@GRAD");
  const bool by_times = op.attr<bool>("norm_by_times");
  return [=, dx = op.out("Logits@GRAD"), scratch = std::make_shared<Scratch>()](KernelContext& c) {
    if (!c.needs(dx)) return;
    const Frames frames = frames_of(c, logits, length, scratch.get());
    const int64_t classes = c[slopes].shape()[2];
    const T *from = c[slopes].data<T>(), *g = c[dloss].data<T>();
    T* to = zeroed<T>(c, dx);
    for (int64_t s = 0; s < frames.batch; ++s) {
      const int64_t rows = frames.spans.rows(s);
      const T scale = by_times && rows > 0 ? g[s] / static_cast<T>(rows) : g[s];
      for (int64_t t = 0; t < rows; ++t) {
        const T* slope = from + (t * frames.batch + s) * classes;
        T* out = to + frames.row(s, t) * classes;
        for (int64_t k = 0; k < classes; ++k) out[k] = slope[k] * scale;
      }
    }
  };
}

AB_OP(warpctc)
    .doc(
        "Loss = -log of the sum, over all paths of rows that give Label after dropping repeats and then blanks, of the "
        "product of softmax(Logits) along the path; 0 if a sequence is too short for its labels.")
    .source("Graves et al., Connectionist temporal classification, ICML 2006")
    .in("Logits", "[rows, classes] float with LoD, or [rows, batch, classes] with LogitsLength")
    .in("Label",
        "[labels, 1] int32 or int64 with LoD, or [batch, labels] with LabelLength; the blank counts as a label")
    .in_optional("LogitsLength", "[batch] or [batch, 1] int32 or int64, rows of each sequence")
    .in_optional("LabelLength", "[batch] or [batch, 1] int32 or int64, number of labels of each sequence")
    .out_intermediate("WarpCTCGrad", "[longest, batch, classes], the derivative of Loss with respect to Logits")
    .out("Loss", "[batch, 1]")
    .attr<int32_t>("blank", 0, "class of the blank, in [0, classes)")
    .attr<bool>("norm_by_times", false, "divides the gradient by the number of rows")
    .dtype_of_input("Logits")
    .infer(infer)
    .grad_reads({"Logits", "LogitsLength"}, {"WarpCTCGrad"})
    .grad_from({"Loss"})
    .grad_to({"Logits"})
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return forward<T>(op); });

AB_GRAD(warpctc)
    .doc("Logits@GRAD = WarpCTCGrad Loss@GRAD, with norm_by_times divided by the number of rows.")
    .dtype_of_input("Logits")
    .infer([](InferContext& c) {
      const auto [rows, batch] = check_logits(c);
      const Shape& x = c.in("Logits").shape;
      check_shape(c, "WarpCTCGrad", Shape{rows, batch, x[x.rank() - 1]});
      check_shape(c, "Loss@GRAD", Shape{batch, 1});
      for (const char* slot : {"WarpCTCGrad", "Loss@GRAD"}) check_same_dtype(c, "Logits", slot);
      grad_as(c, "Logits@GRAD", "Logits", "Logits");
    })
    .cpu<float, double>([]<class T>(TypeTag<T>, const KernelArgs& op) { return gradient<T>(op); });

}  // namespace
}  // namespace anabranch::sequence::warpctc_op
