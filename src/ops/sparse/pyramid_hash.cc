// Embeddings of all short word sequences of a text, found by hashes in one shared vector of numbers.
#include <bit>
#include <cstring>
#include <memory>
#include <vector>

#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"
#include "ops/kernels/outputs.h"
#include "ops/kernels/philox.h"

namespace anabranch::sparse::pyramid_hash_op {
namespace {

// XXH32, as in its specification (version 0.1.1).
class Xxh32 {
 public:
  static uint32_t of(const void* data, size_t bytes, uint32_t seed) {
    const auto* p = static_cast<const unsigned char*>(data);
    const auto length = static_cast<uint32_t>(bytes);
    uint32_t h = seed + kPrime5;
    if (bytes >= 16) {
      uint32_t a[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
      for (; bytes >= 16; p += 16, bytes -= 16) {
        for (int k = 0; k < 4; ++k) a[k] = std::rotl(a[k] + word(p + 4 * k) * kPrime2, 13) * kPrime1;
      }
      h = std::rotl(a[0], 1) + std::rotl(a[1], 7) + std::rotl(a[2], 12) + std::rotl(a[3], 18);
    }
    h += length;
    for (; bytes >= 4; p += 4, bytes -= 4) h = std::rotl(h + word(p) * kPrime3, 17) * kPrime4;
    for (; bytes > 0; ++p, --bytes) h = std::rotl(h + *p * kPrime5, 11) * kPrime1;
    h = (h ^ (h >> 15)) * kPrime2;
    h = (h ^ (h >> 13)) * kPrime3;
    return h ^ (h >> 16);
  }

 private:
  static constexpr uint32_t kPrime1 = 0x9E3779B1u, kPrime2 = 0x85EBCA77u, kPrime3 = 0xC2B2AE3Du, kPrime4 = 0x27D4EB2Fu,
                            kPrime5 = 0x165667B1u;
  static uint32_t word(const unsigned char* p) {
    uint32_t u;
    std::memcpy(&u, p, sizeof u);
    return u;
  }
};

struct Options {
  int64_t width, space, part, longest;
  float drop;
  bool training;
  explicit Options(const ir::Op& op)
      : width(op.attr<int32_t>("num_emb")),
        space(op.attr<int32_t>("space_len")),
        part(op.attr<int32_t>("rand_len")),
        longest(op.attr<int32_t>("pyramid_layer")),
        drop(op.attr<float>("drop_out_percent")),
        training(op.attr<int32_t>("is_training") != 0) {}

  // The start of part k of the embedding of these words.
  int64_t place(const float* words, int64_t n, int64_t k) const {
    const auto bytes = static_cast<size_t>(n) * sizeof(float);
    return Xxh32::of(words, bytes, static_cast<uint32_t>(k * part)) % static_cast<uint32_t>(space);
  }
  // Calls fn(first word, words) for the short sequences of a text, shortest first.
  template <class Fn> void each_term(int64_t begin, int64_t end, Fn&& fn) const {
    for (int64_t n = 2; n <= std::min(longest, end - begin); ++n) {
      for (int64_t at = begin; at + n <= end; ++at) fn(at, n);
    }
  }
};

void check_sizes(InferContext& c) {
  const Options o(c.op());
  AB_CHECK(o.width >= 1 && o.part >= 1 && o.space >= 1, InvalidArgument,
           "num_emb, rand_len and space_len must be at least 1, got {}, {} and {}", o.width, o.part, o.space);
  AB_CHECK(o.width % o.part == 0, InvalidArgument, "rand_len must divide num_emb, got {} and {}", o.part, o.width);
  AB_CHECK(o.longest >= 2, InvalidArgument, "pyramid_layer must be at least 2, got {}", o.longest);
  AB_CHECK(
      !c.attr<bool>("use_filter") || (c.attr<int32_t>("white_list_len") == 0 && c.attr<int32_t>("black_list_len") == 0),
      Unsupported, "use_filter is not supported with lists of allowed or excluded ids");
  check_rank(c, "X", 2, 2);
  check_dtype(c, "X", DType::kInt32);
  check_shape(c, "X", Shape{c.in("X").shape[0], 1});
  check_shape(c, "W", Shape{o.space + o.part, 1});
  check_dtype(c, "W", DType::kFloat32);
}

const std::vector<int64_t>& texts_of(const Tensor& x) {
  AB_CHECK(!x.lod().empty() && x.lod().back().back() == x.rows(), InvalidArgument,
           "X must have LoD that ends at its last row");
  return x.lod().back();
}

void infer(InferContext& c) {
  check_sizes(c);
  const Shape& x = c.in("X").shape;
  const Options o(c.op());
  c.set_out("Out", c.runtime() ? Shape() : Shape{kUnknown, o.width}, DType::kFloat32);
  c.out("Out").lod_level = 1;
  int64_t rows = kUnknown;
  AB_CHECK(x[0] == kUnknown || !__builtin_mul_overflow(x[0], std::min(o.longest, std::max<int64_t>(2, x[0])), &rows),
           InvalidArgument, "X must have fewer rows, because the shape of DropPos overflows: got {}", x.str());
  c.set_out("DropPos", Shape{rows, 1}, DType::kInt32);
  c.out("DropPos").lod_level = 1;
  c.set_out("X_Temp_Out", x, DType::kFloat32);
}

// State of a kernel: the kept terms, and the offsets of the terms of each text and of their rows in Out.
struct Work {
  std::vector<int32_t> stays;
  std::vector<int64_t> terms, rows;
};

// Texts without terms have a row of zeros.
void choose(const Options& o, const std::vector<int64_t>& texts, const Philox& rng, Work* work) {
  work->stays.clear();
  work->terms.assign(1, 0);
  work->rows.assign(1, 0);
  for (size_t t = 0; t + 1 < texts.size(); ++t) {
    int64_t kept = 0;
    o.each_term(texts[t], texts[t + 1], [&](int64_t, int64_t) {
      const bool stay = !o.training || o.drop <= 0 || rng.uniform(work->stays.size()) >= o.drop;
      work->stays.push_back(stay ? 1 : 0);
      kept += stay ? 1 : 0;
    });
    work->terms.push_back(work->terms.back() + kept);
    work->rows.push_back(work->rows.back() + std::max<int64_t>(1, kept));
  }
}

LoDRef one_level(const std::vector<int64_t>& offsets) { return std::make_shared<const LoD>(LoD{offsets}); }

// As in Fluid 1.8.5, outside of training rows are multiplied by drop_out_percent unless it is 0.
void embed(const Options& o, const float* words, const std::vector<int64_t>& texts, const Work& work, const float* w,
           float* out) {
  const float factor = o.training ? 1.0f : o.drop;
  size_t term = 0;
  for (size_t t = 0; t + 1 < texts.size(); ++t) {
    float* row = out + work.rows[t] * o.width;
    std::fill(row, out + work.rows[t + 1] * o.width, 0.0f);
    o.each_term(texts[t], texts[t + 1], [&](int64_t first, int64_t n) {
      if (!work.stays[term++]) return;
      for (int64_t k = 0; k < o.width / o.part; ++k) {
        const float* from = w + o.place(words + first, n, k);
        for (int64_t j = 0; j < o.part; ++j) *row++ = from[j] * factor;
      }
    });
  }
}

Kernel forward(const KernelArgs& op) {
  return [o = Options(op.op()), key = op.random(), x = op.in("X"), w = op.in("W"), out = op.out("Out"),
          drop = op.out("DropPos"), words = op.out("X_Temp_Out"), work = std::make_shared<Work>(),
          scratch = std::make_shared<std::vector<float>>()](KernelContext& c) {
    const std::vector<int64_t>& texts = texts_of(c[x]);
    const int32_t* ids = c[x].data<int32_t>();
    const int64_t n = c[x].rows();
    scratch->assign(ids, ids + n);
    if (c.needs(words)) std::copy(scratch->begin(), scratch->end(), c[words].mutable_data<float>());
    choose(o, texts, Philox(with_step(key, c)), work.get());
    if (c.needs(drop)) {
      int32_t* to = zeroed<int32_t>(c, drop);
      std::copy_n(work->stays.begin(), std::min<size_t>(work->stays.size(), static_cast<size_t>(c[drop].numel())), to);
      c[drop].set_lod(one_level(work->terms));
    }
    if (!c.needs(out)) return;
    c[out].resize(Shape{work->rows.back(), o.width}, DType::kFloat32);
    c[out].set_lod(one_level(work->rows));
    embed(o, scratch->data(), texts, *work, c[w].data<float>(), c[out].mutable_data<float>());
  };
}

Kernel backward(const KernelArgs& op) {
  return [o = Options(op.op()), x = op.in("X"), drop = op.in("DropPos"), words = op.in("X_Temp_Out"),
          dout = op.in("Out@GRAD"), dw = op.out("W@GRAD")](KernelContext& c) {
    if (!c.needs(dw)) return;
    const std::vector<int64_t>& texts = texts_of(c[x]);
    const float *from = c[words].data<float>(), *g = c[dout].data<float>();
    const int32_t* stays = c[drop].data<int32_t>();
    float* to = zeroed<float>(c, dw);
    const float factor = o.training ? 1.0f : o.drop;
    int64_t term = 0, row = 0;
    for (size_t t = 0; t + 1 < texts.size(); ++t) {
      const int64_t first_row = row;
      o.each_term(texts[t], texts[t + 1], [&](int64_t first, int64_t n) {
        AB_CHECK(term < c[drop].numel() && (!stays[term] || row < c[dout].rows()), InvalidArgument,
                 "DropPos and Out@GRAD must be those of the forward op");
        if (!stays[term++]) return;
        for (int64_t k = 0; k < o.width / o.part; ++k) {
          float* at = to + o.place(from + first, n, k);
          const float* own = g + row * o.width + k * o.part;
          for (int64_t j = 0; j < o.part; ++j) at[j] += own[j] * factor;
        }
        ++row;
      });
      if (row == first_row) ++row;
    }
  };
}

void hash_attrs(OpDef& def) {
  def.attr<int32_t>("num_emb", 0, "size of an embedding")
      .attr<int32_t>("space_len", 0, "exclusive upper bound of the hashes")
      .attr<int32_t>("pyramid_layer", 2, "maximum sequence length, at least 2")
      .attr<int32_t>("rand_len", 0, "number of elements per hash; must divide num_emb")
      .attr<float>("drop_out_percent", 0.0f, "fraction of sequences dropped in training",
                   within("drop_out_percent", 0.0f, 1.0f))
      .attr<int32_t>("is_training", 0, "drops sequences; 0: multiplies Out by drop_out_percent")
      .attr<bool>("use_filter", true, "supported only with lists of length 0")
      .attr<int32_t>("white_list_len", 0, "0: allows all words")
      .attr<int32_t>("black_list_len", 0, "0: excludes no word")
      .attr<int32_t>("seed", 0, "seed of this op; 0: uses the seed of the program or the process")
      .ignores("lr", 0.0f)
      .ignores("distribute_update_vars", std::string());
}

AB_OP(pyramid_hash)
    .doc(
        "Out = an embedding of each sequence of 2 to pyramid_layer neighboring words of each text, shortest first. "
        "Its parts of rand_len numbers start in W at XXH32 of the words as float32, with the index of the part times "
        "rand_len as the seed, modulo space_len. A text without such sequences has a row of zeros.")
    .in("X", "[words, 1] int32 with one sequence per text")
    .in("W", "[space_len + rand_len, 1] float32")
    .in_optional("WhiteList", "ignored")
    .in_optional("BlackList", "ignored")
    .out("Out", "[sequences, num_emb] float32, one sequence per text")
    .out("DropPos", "[words pyramid_layer, 1] int32: 1 for each kept sequence, 0 for each dropped one")
    .out_intermediate("X_Temp_Out", "X as float32")
    .with(hash_attrs)
    .effects(kRandom | kDynamic)
    .dtype_of_input("W")
    .infer(infer)
    .grad_reads({"X", "W"}, {"DropPos", "X_Temp_Out"})
    .grad_from({"Out"})
    .grad_to({"W"})
    .cpu<float>([](auto, const KernelArgs& op) { return forward(op); });

AB_GRAD(pyramid_hash)
    .doc("W@GRAD = each part of Out@GRAD, added at its position in W. The attribute lr is ignored.")
    .dtype_of_input("W")
    .infer([](InferContext& c) {
      check_sizes(c);
      check_rank(c, "DropPos", 2, 2);
      check_same_shape(c, "X", "X_Temp_Out");
      check_rank(c, "Out@GRAD", 2, 2);
      check_shape(c, "Out@GRAD", Shape{c.in("Out@GRAD").shape[0], c.attr<int32_t>("num_emb")});
      grad_as(c, "W@GRAD", "W");
    })
    .cpu<float>([](auto, const KernelArgs& op) { return backward(op); });

}  // namespace
}  // namespace anabranch::sparse::pyramid_hash_op
