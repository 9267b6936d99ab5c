// Shared by the kernels for channels last: splitting rows into chunks, and sums per channel. Adjacent threads take
// adjacent channels, each for a chunk of the rows; the partial sums are stored in the workspace until one group of
// lanes per channel joins them. Only for .cu files.
#pragma once
#include <initializer_list>
#include <type_traits>

#include "ops/device/args_library.h"
#include "ops/device/pack.h"

namespace anabranch::device {

enum class After { kNothing, kRelu, kAddRelu };  // what follows the normalization

// [rows, channels], split into chunks of rows for packs of channels.
struct LastLay {
  int64_t rows, channels, packs, chunks, length;

  LastLay(int64_t rows, int64_t channels, int64_t pack, int64_t threads)
      : rows(rows), channels(channels), packs(channels / pack) {
    constexpr int64_t kLeast = 8;  // rows of a chunk that amortize reading the operands of channels
    const int64_t most = (rows + kLeast - 1) / kLeast;
    chunks = threads / packs;
    if (chunks > most) chunks = most;
    if (chunks < 1) chunks = 1;
    length = (rows + chunks - 1) / chunks;
  }
  AB_HD int64_t threads() const { return packs * chunks; }
  AB_HD int64_t begin(int64_t chunk) const { return chunk * length; }
  AB_HD int64_t end(int64_t chunk) const { return begin(chunk) + length < rows ? begin(chunk) + length : rows; }
};

constexpr int64_t kSumThreads = 65536, kApplyThreads = 1048576;

template <class T> constexpr int kPackOf = static_cast<int>(16 / sizeof(T));

// Bytes of two sums per channel and chunk, [chunk, 2, channels]: with packs there are more chunks.
template <class T> size_t last_parts(int64_t rows, int64_t channels) {
  const LastLay lay(rows, channels, channels % kPackOf<T> == 0 ? kPackOf<T> : 1, kSumThreads);
  return static_cast<size_t>(2 * lay.chunks * channels) * sizeof(Compute<T>);
}

// fn(std::integral_constant<int, elements of a pack>).
template <class T, class Fn> int by_packs(int64_t channels, std::initializer_list<const void*> tensors, Fn fn) {
  constexpr int kPack = kPackOf<T>;
  bool wide = channels % kPack == 0;
  for (const void* p : tensors) wide = wide && packed<Pack<T, kPack>>(p);
  return wide ? fn(std::integral_constant<int, kPack>{}) : fn(std::integral_constant<int, 1>{});
}

// y = x factor + offset. The forward kernel and the gradient of a following relu, which tests y > 0, must compute the
// same bits, so the compiler has no choice of contractions.
template <class P> AB_HD P multiply_add(P a, P b, P c) {
#if defined(__CUDA_ARCH__)
  return fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class P> struct ChannelLine {
  P factor, offset;
  AB_HD void begin(P scale, P bias, P used, P inverse) {
    factor = scale * inverse;
    offset = multiply_add(-used, factor, bias);
  }
  AB_HD P at(P x) const { return multiply_add(x, factor, offset); }
};

template <class T, int kPack> AB_HD Pack<T, kPack> pack_at(const T* from, int64_t at) {
  return *reinterpret_cast<const Pack<T, kPack>*>(from + at);
}
template <class T, int kPack> AB_HD void store_pack(T* to, int64_t at, const Pack<T, kPack>& p) {
  *reinterpret_cast<Pack<T, kPack>*>(to + at) = p;
}

// The part of dy that counts: all of it, or the part that passes a following relu. begin(): for the channels from this
// one on. take(): for the pack at that position.
template <class T, int kPack> struct WholeGradient {
  AB_HD void begin(int64_t) {}
  AB_HD void take(int64_t, Pack<T, kPack>&) {}
  AB_HD Compute<T> operator()(int, Compute<T>, Compute<T> dy) const { return dy; }
};

// Sums dy, and dy times Term of x; if dy is missing, Term replaces it.
template <class T, int kPack, class Term, class Gradient = WholeGradient<T, kPack>> struct LastSums {
  using P = Compute<T>;
  LastLay lay;
  const T *x, *dy;
  Term term;
  P* parts;
  Gradient gradient = {};

  AB_HD void operator()(int64_t n) const {
    const int64_t first = n % lay.packs * kPack, chunk = n / lay.packs;
    P base[kPack], scale[kPack], sums[2][kPack] = {};
    for (int k = 0; k < kPack; ++k) term.begin(first + k, base[k], scale[k]);
    Gradient of = gradient;
    of.begin(first);
    AB_UNROLL for (int64_t row = lay.begin(chunk); row < lay.end(chunk); ++row) {
      const int64_t at = row * lay.channels + first;
      const Pack<T, kPack> px = pack_at<T, kPack>(x, at);
      Pack<T, kPack> pg = px;
      if (dy) {
        pg = pack_at<T, kPack>(dy, at);
        of.take(at, pg);
      }
      for (int k = 0; k < kPack; ++k) {
        const P d = (load(px.at[k]) - base[k]) * scale[k], g = dy ? of(k, load(px.at[k]), load(pg.at[k])) : d;
        sums[0][k] += g;
        sums[1][k] += g * d;
      }
    }
    P* to = parts + chunk * 2 * lay.channels + first;
    for (int k = 0; k < kPack; ++k) to[k] = sums[0][k];
    for (int k = 0; k < kPack; ++k) to[lay.channels + k] = sums[1][k];
  }
};

template <class P> struct LastParts {
  LastLay lay;
  const P* parts;
  template <class L> AB_HD void joined(const L& lanes, int64_t channel, double* first, double* second) const {
    double sums[2] = {};
    for (int64_t chunk = lanes.index(); chunk < lay.chunks; chunk += lanes.count()) {
      const P* from = parts + chunk * 2 * lay.channels + channel;
      sums[0] += static_cast<double>(from[0]);
      sums[1] += static_cast<double>(from[lay.channels]);
    }
    *first = lanes.sum(sums[0]);
    *second = lanes.sum(sums[1]);
  }
};

}  // namespace anabranch::device
