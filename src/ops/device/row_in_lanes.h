// Rows held in the registers of the 32 lanes of a warp, so that memory is read once and written once, in packs of
// adjacent elements. The distribution over lanes and the order of sums depend only on the row's width; if a tensor is
// not aligned for packs, the same elements are read and written one by one. A body for rows_by_warps():
//   template <class Share> struct Body {
//     Share share;
//     template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
//       typename Share::template Held<T> x;
//       x.read(lanes, share, from + row * share.width);
//       share.elements(lanes, [&](int k, int e) { sum += x(k, e); });
//       share.write(lanes, to + row * share.width, [&](int k, int e) { return x(k, e) / sum; });
// by_share() chooses Share.
#pragma once
#include "ops/device/pack.h"

// Before a loop over registers: a variable index would move them to memory.
#if defined(__CUDA_ARCH__)
#define AB_UNROLL_ALL _Pragma("unroll")
#else
#define AB_UNROLL_ALL
#endif

namespace anabranch::device {

inline constexpr int kWarp = 32;

// A lane's share of a row: every 32nd pack of kElements, at most kPacks of them.
template <int kElements, int kPacks> class RowShare {
#if defined(AB_HOST_KERNELS)
  static constexpr int kSlots = kPacks * kWarp;  // for a row with one lane
#else
  static constexpr int kSlots = kPacks;
#endif
  template <class T>
  static constexpr int kAtOnce = sizeof(T) * kElements > 16 ? static_cast<int>(16 / sizeof(T)) : kElements;

 public:
  static constexpr int kPack = kElements;
  template <class T> using Packed = Pack<T, kPack>;

  // Values that a lane computes for a row.
  template <class T> struct Of { T at[kSlots][kPack]; };

  // A lane's input from a row, in the words that were loaded: unpacked on use, 16-bit elements need half the registers,
  // and the first words do not wait for the others.
  template <class T> class Held {
   public:
    template <class L> AB_HD void read(const L& lanes, const RowShare& share, const T* row) {
      if (share.packs_)
        share.packs(lanes, [&](int k, int first) { words_[k] = *reinterpret_cast<const Words*>(row + first); });
      else
        share.packs(lanes, [&](int k, int first) { words_[k] = one_by_one(row + first); });
    }
    AB_HD Compute<T> operator()(int k, int e) const {
      if constexpr (sizeof(T) == 4) {
        return float_of(words_[k].at[e]);
      } else {
        T x;
        x.bits = static_cast<uint16_t>(words_[k].at[e / 2] >> (e % 2 * 16));
        return load(x);
      }
    }

   private:
    static constexpr int kWords = kPack * static_cast<int>(sizeof(T)) / 4;
    struct [[gnu::may_alias]] alignas(4 * kWords) Words {
      uint32_t at[kWords];
    };
    AB_HD static Words one_by_one(const T* from) {
      Words words;
      if constexpr (sizeof(T) == 4) {
        AB_UNROLL_ALL for (int e = 0; e < kPack; ++e) words.at[e] = bits_of(from[e]);
      } else {
        AB_UNROLL_ALL for (int e = 0; e < kPack; e += 2) {
          words.at[e / 2] = from[e].bits | static_cast<uint32_t>(from[e + 1].bits) << 16;
        }
      }
      return words;
    }
    Words words_[kSlots];
  };

  int width;

  // For rows in these tensors; null: a missing one.
  template <class... T>
  explicit RowShare(int64_t width, const T*... in)
      : width(static_cast<int>(width)), packs_((packed<Pack<T, kAtOnce<T>>>(in) && ...)) {}

  // fn(k, first) for each pack of the lane: the k-th one, which starts at element `first` of the row.
  template <class L, class Fn> AB_HD void packs(const L& lanes, const Fn& fn) const {
    AB_UNROLL_ALL for (int k = 0; k < kSlots; ++k) {
      const int first = (k * static_cast<int>(lanes.count()) + static_cast<int>(lanes.index())) * kPack;
      if (first < width) fn(k, first);
    }
  }
  // fn(k, e) for each element: element e of the k-th pack.
  template <class L, class Fn> AB_HD void elements(const L& lanes, const Fn& fn) const {
    packs(lanes, [&](int k, int) { AB_UNROLL_ALL for (int e = 0; e < kPack; ++e) fn(k, e); });
  }
  // row[i] = fn(k, e) for each element.
  template <class T, class L, class Fn> AB_HD void write(const L& lanes, T* row, const Fn& fn) const {
    packs(lanes, [&](int k, int first) {
      Packed<T> p;
      AB_UNROLL_ALL for (int e = 0; e < kPack; ++e) store(&p.at[e], fn(k, e));
      if (packs_) {
        *reinterpret_cast<Packed<T>*>(row + first) = p;
      } else {
        AB_UNROLL_ALL for (int e = 0; e < kPack; ++e) row[first + e] = p.at[e];
      }
    });
  }
  // One pack of an operand shared by all rows, whose elements may be wider than theirs.
  template <class T> AB_HD Packed<T> pack(const T* from) const {
    Packed<T> p;
    if (!packs_) {
      AB_UNROLL_ALL for (int e = 0; e < kPack; ++e) p.at[e] = from[e];
      return p;
    }
    AB_UNROLL_ALL for (int e = 0; e < kPack; e += kAtOnce<T>) {
      const auto part = *reinterpret_cast<const Pack<T, kAtOnce<T>>*>(from + e);
      AB_UNROLL_ALL for (int i = 0; i < kAtOnce<T>; ++i) p.at[e + i] = part.at[i];
    }
    return p;
  }

 private:
  bool packs_;
};

// fn(share) if rows of T can be held: few elements, in whole packs. Otherwise otherwise().
template <class T, class Fn, class Otherwise, class... In>
int by_share(int64_t width, const Fn& fn, const Otherwise& otherwise, const In*... in) {
  if constexpr (sizeof(T) <= 4) {
    constexpr int kPack = 16 / sizeof(T);
    if (width > 0 && width <= 128 && width % 4 == 0) return fn(RowShare<4, 1>(width, in...));
    if (width > 128 && width <= 512 && width % kPack == 0) return fn(RowShare<kPack, 16 / kPack>(width, in...));
    if (width > 512 && width <= 1024 && width % kPack == 0) return fn(RowShare<kPack, 32 / kPack>(width, in...));
  }
  return otherwise();
}

// body(lanes, row) for each row of [0, n), by 32 lanes each.
template <class Body> int rows_by_warps(const Launch& launch, int64_t n, const Body& body) {
#if defined(__CUDACC__)
  if (n <= 0) return 0;
  constexpr int64_t kRows = kBlock / kWarp;
  warp_rows_kernel<<<blocks_for((n + kRows - 1) / kRows), kBlock, 0, launch.stream>>>(n, body);
  return static_cast<int>(cudaGetLastError());
#else
  return rows(launch, n, kWarp, body);
#endif
}

}  // namespace anabranch::device
