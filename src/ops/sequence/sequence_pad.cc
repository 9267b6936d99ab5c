// Converts between sequences of rows and a batch padded to one length: pad, unpad, mask.
#include <algorithm>

#include "ops/declare/shape_args.h"
#include "ops/kernels/ids.h"
#include "ops/sequence/offsets.h"

namespace anabranch::sequence::sequence_pad_op {
namespace {

int64_t longest(const Offsets& o) {
  int64_t most = 0;
  for (int64_t s = 0; s < count(o); ++s) {
    most = std::max(most, o[static_cast<size_t>(s) + 1] - o[static_cast<size_t>(s)]);
  }
  return most;
}

int64_t padded_length(const ir::Op& op, const Offsets& o) {
  const int64_t requested = op.attr<int32_t>("padded_length"), most = longest(o);
  AB_CHECK(requested == -1 || requested >= most, InvalidArgument,
           "padded_length must be -1 or at least {}, the length of the longest sequence, got {}", most, requested);
  return requested == -1 ? most : requested;
}

Shape padded_shape(const Shape& x, int64_t sequences, int64_t length) {
  AB_CHECK(x.rank() < kMaxRank, InvalidArgument, "X must have at most {} axes, got {}", kMaxRank - 1, x.str());
  Shape out{sequences, length};
  for (int d = 1; d < x.rank(); ++d) out.push_back(x[d]);
  return out;
}

// ---- sequence_pad

void infer_pad(InferContext& c) {
  check_rank(c, "X", 2, kMaxRank - 1);
  check_same_dtype(c, "X", "PadValue");
  const Shape& x = c.in("X").shape;
  const int64_t pads = c.in("PadValue").shape.numel(), width = x.slice(1, x.rank()).numel();
  AB_CHECK(pads < 0 || width < 0 || pads == 1 || pads == width, ShapeMismatch,
           "PadValue must be one number or have the size of a row of X {}, got {}", x.str(),
           c.in("PadValue").shape.str());
  if (!c.runtime()) {
    const int32_t length = c.attr<int32_t>("padded_length");
    c.set_out("Out", padded_shape(x, kUnknown, length > 0 ? length : kUnknown), c.in("X").dtype);
    c.set_out("Length", Shape{kUnknown}, DType::kInt64);
    return;
  }
  const Offsets& o = lod_of(c, "X").back();
  c.set_out("Out", padded_shape(x, count(o), padded_length(c.op(), o)), c.in("X").dtype);
  c.set_out("Length", Shape{count(o)}, DType::kInt64);
}

template <class T>
void pad_sequence(const T* rows, int64_t n, int64_t length, int64_t width, const T* pad, bool one, T* out) {
  std::copy(rows, rows + n * width, out);
  for (int64_t r = n; r < length; ++r) {
    for (int64_t j = 0; j < width; ++j) out[r * width + j] = pad[one ? 0 : j];
  }
}

AB_OP(sequence_pad)
    .doc("Out = the sequences of X, each padded to padded_length rows with PadValue.")
    .in("X", "[rows, ...] with LoD")
    .in("PadValue", "[1], or the shape of a row")
    .out("Out", "[sequences, padded_length, ...]")
    .out("Length", "[sequences] int64: length of each")
    .attr<int32_t>("padded_length", -1, "number of rows of each sequence; -1: the length of the longest")
    .infer(infer_pad)
    .grad_reads({"X"})
    .grad_from({"Out"})
    .grad_to({"X"})
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), pad = op.in("PadValue"), out = op.out("Out"), lengths = op.out("Length")](KernelContext& c) {
            const Offsets& o = offsets(c[x]);
            const int64_t length = c[out].shape()[1], width = c[x].row_elems();
            const bool one = c[pad].numel() == 1;
            T* to = c[out].mutable_data<T>();
            int64_t* n = c.needs(lengths) ? c[lengths].mutable_data<int64_t>() : nullptr;
            for (int64_t s = 0; s < count(o); ++s) {
              const int64_t first = o[static_cast<size_t>(s)], rows = o[static_cast<size_t>(s) + 1] - first;
              pad_sequence(c[x].data<T>() + first * width, rows, length, width, c[pad].data<T>(), one,
                           to + s * length * width);
              if (n) n[s] = rows;
            }
          };
    });

// Rows of a padded batch, concatenated: `from` [sequences, length, width] to the rows that o describes.
template <class T> void take_rows(const Offsets& o, const T* from, int64_t length, int64_t width, T* to) {
  for (int64_t s = 0; s < count(o); ++s) {
    const int64_t first = o[static_cast<size_t>(s)], rows = o[static_cast<size_t>(s) + 1] - first;
    const T* batch = from + s * length * width;
    std::copy(batch, batch + rows * width, to + first * width);
  }
}

AB_GRAD(sequence_pad)
    .doc("X@GRAD = the rows of Out@GRAD without padding.")
    .infer([](InferContext& c) {
      check_same_dtype(c, "X", "Out@GRAD");
      if (c.runtime()) {
        const Offsets& o = lod_of(c, "X").back();
        check_shape(c, "Out@GRAD", padded_shape(c.in("X").shape, count(o), padded_length(c.op(), o)));
      }
      grad_as(c, "X@GRAD", "X", "X");
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        take_rows(offsets(c[x]), c[dout].data<T>(), c[dout].shape()[1], c[x].row_elems(), c[dx].mutable_data<T>());
      };
    });

// ---- sequence_unpad

Offsets lengths_as_offsets(const Tensor& lengths, const Shape& x) {
  Tensor scratch;
  const int64_t* n = as_int64(lengths, &scratch);
  AB_CHECK(is_number_per_row(lengths.shape(), x[0]), ShapeMismatch,
           "Length must have one number for each of the {} sequences, got {}", x[0], lengths.shape().str());
  Offsets o{0};
  for (int64_t s = 0; s < x[0]; ++s) {
    AB_CHECK(n[s] >= 0 && n[s] <= x[1], InvalidArgument, "Length of sequence {} must be 0 to {}, got {}", s, x[1],
             n[s]);
    o.push_back(o.back() + n[s]);
  }
  return o;
}

Shape unpadded_shape(const Shape& x, int64_t rows) {
  Shape out{rows};
  if (x.rank() == 2) out.push_back(1);
  for (int d = 2; d < x.rank(); ++d) out.push_back(x[d]);
  return out;
}

void infer_unpad(InferContext& c) {
  check_rank(c, "X", 2, kMaxRank);
  check_ids_dtype(c, "Length");
  const Shape& x = c.in("X").shape;
  if (!c.runtime()) {
    c.set_out("Out", unpadded_shape(x, kUnknown), c.in("X").dtype);
    c.out("Out").lod_level = 1;
    return;
  }
  Offsets o = lengths_as_offsets(*c.in("Length").value, x);
  c.set_out("Out", unpadded_shape(x, o.back()), c.in("X").dtype);
  set_lod(c, "Out", one_level(std::move(o)));
}

AB_OP(sequence_unpad)
    .doc("Out = the first Length rows of each sample of a padded batch, concatenated as sequences.")
    .in("X", "[sequences, length, ...]")
    .in("Length", "[sequences] int64")
    .out("Out", "[sum of Length, ...] with LoD")
    .effects(kDynamic)
    .infer(infer_unpad)
    .grad_reads({"X"})
    .grad_to({"X"})
    .dtype_of_input("X")
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const Shape& shape = c[x].shape();
        take_rows(offsets(c[out]), c[x].data<T>(), shape[1], shape.numel(2, shape.rank()), c[out].mutable_data<T>());
      };
    });

AB_GRAD(sequence_unpad)
    .doc("X@GRAD = Out@GRAD at the copied rows, zero at the padding. Out@GRAD has the LoD.")
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, kMaxRank);
      check_same_dtype(c, "X", "Out@GRAD");
      if (c.runtime()) {
        const Offsets& o = lod_of(c, "Out@GRAD").back();
        const Shape& x = c.in("X").shape;
        AB_CHECK(count(o) == x[0] && longest(o) <= x[1] && unpadded_shape(x, o.back()) == c.in("Out@GRAD").shape,
                 ShapeMismatch, "Out@GRAD must have the copied rows of X, got {} for X {}",
                 c.in("Out@GRAD").shape.str(), x.str());
      }
      grad_as(c, "X@GRAD", "X", "X");
    })
    .cpu<float, double, int32_t, int64_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
        if (!c.needs(dx)) return;
        const Offsets& o = offsets(c[dout]);
        const Shape& shape = c[x].shape();
        const int64_t width = shape.numel(2, shape.rank());
        const T* g = c[dout].data<T>();
        T* to = c[dx].mutable_data<T>();
        std::fill(to, to + c[dx].numel(), T{0});
        for (int64_t s = 0; s < count(o); ++s) {
          const int64_t first = o[static_cast<size_t>(s)], last = o[static_cast<size_t>(s) + 1];
          std::copy(g + first * width, g + last * width, to + s * shape[1] * width);
        }
      };
    });

// ---- sequence_mask

constexpr int64_t kMaxMask = int64_t{1} << 31;

int64_t mask_length(const InferContext& c) {
  const bool given = c.has_in("MaxLenTensor");
  if (given && !c.in("MaxLenTensor").value) return kUnknown;
  int64_t most = scalar_or(c, "MaxLenTensor", c.attr<int32_t>("maxlen"));
  AB_CHECK(!given || most > 0, InvalidArgument, "MaxLenTensor must be above 0, got {}", most);
  if (most < 0) {
    if (!c.runtime()) return kUnknown;
    const Tensor& x = *c.in("X").value;
    Tensor scratch;
    const int64_t* n = as_int64(x, &scratch);
    most = 0;
    for (int64_t i = 0; i < x.numel(); ++i) most = std::max(most, n[i]);
  }
  AB_CHECK(most < kMaxMask, InvalidArgument, "the length of the mask must be below {}, got {}", kMaxMask, most);
  return most;
}

AB_OP(sequence_mask)
    .doc("Y[..., j] = 1 where j < X[...], else 0, for j below maxlen.")
    .in("X", "[...] int64 lengths")
    .in_optional("MaxLenTensor", "[1] int, instead of the attribute maxlen")
    .out("Y", "[..., maxlen] of out_dtype")
    .attr<int32_t>("maxlen", -1, "length of the mask; -1: the maximum of X")
    .attr<int32_t>("out_dtype", static_cast<int32_t>(DType::kInt64), "id of the dtype of Y")
    .effects(kDynamic)
    .infer([](InferContext& c) {
      check_ids_dtype(c, "X");
      if (c.has_in("MaxLenTensor")) check_ids_dtype(c, "MaxLenTensor");
      check_rank(c, "X", 1, kMaxRank - 1);
      const DType dtype = dtype_from_number(c.attr<int32_t>("out_dtype"));
      AB_CHECK(dtype != DType::kFloat16, Unsupported, "out_dtype must not be float16");
      Shape out = c.in("X").shape;
      out.push_back(mask_length(c));
      c.set_out("Y", out, dtype);
    })
    .no_grad("masks are piecewise constant")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      const auto scratch = std::make_shared<Tensor>();
      return [x = op.in("X"), y = op.out("Y"), scratch](KernelContext& c) {
        const int64_t* n = as_int64(c[x], scratch.get());
        const Shape& shape = c[y].shape();
        const int64_t length = shape[shape.rank() - 1];
        visit_dtype(c[y].dtype(), [&]<class T>(TypeTag<T>) {
          T* to = c[y].mutable_data<T>();
          for (int64_t i = 0; i < c[x].numel(); ++i) {
            for (int64_t j = 0; j < length; ++j) to[i * length + j] = static_cast<T>(j < n[i]);
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::sequence::sequence_pad_op
