#include <bit>
#include <cstring>

#include "ops/declare/declare.h"

namespace anabranch::sparse::hash_op {
namespace {

// XXH64, as in its specification (version 0.1.1): four accumulators over stripes of 32 bytes, then the rest.
class Xxh64 {
 public:
  static uint64_t of(const void* data, size_t bytes, uint64_t seed) {
    const auto* p = static_cast<const unsigned char*>(data);
    const size_t length = bytes;
    uint64_t h = bytes >= 32 ? stripes(&p, &bytes, seed) : seed + kPrime5;
    h += length;
    for (; bytes >= 8; p += 8, bytes -= 8) h = std::rotl(h ^ round(0, word<uint64_t>(p)), 27) * kPrime1 + kPrime4;
    for (; bytes >= 4; p += 4, bytes -= 4) h = std::rotl(h ^ (word<uint32_t>(p) * kPrime1), 23) * kPrime2 + kPrime3;
    for (; bytes > 0; ++p, --bytes) h = std::rotl(h ^ (*p * kPrime5), 11) * kPrime1;
    h = (h ^ (h >> 33)) * kPrime2;
    h = (h ^ (h >> 29)) * kPrime3;
    return h ^ (h >> 32);
  }

 private:
  static constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87u, kPrime2 = 0xC2B2AE3D27D4EB4Fu, kPrime3 = 0x165667B19E3779F9u,
                            kPrime4 = 0x85EBCA77C2B2AE63u, kPrime5 = 0x27D4EB2F165667C5u;

  template <class U> static uint64_t word(const unsigned char* p) {
    U u;
    std::memcpy(&u, p, sizeof(u));
    return u;
  }
  static uint64_t round(uint64_t acc, uint64_t lane) { return std::rotl(acc + lane * kPrime2, 31) * kPrime1; }

  static uint64_t stripes(const unsigned char** p, size_t* bytes, uint64_t seed) {
    uint64_t a[4] = {seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1};
    for (; *bytes >= 32; *p += 32, *bytes -= 32) {
      for (int k = 0; k < 4; ++k) a[k] = round(a[k], word<uint64_t>(*p + 8 * k));
    }
    uint64_t h = std::rotl(a[0], 1) + std::rotl(a[1], 7) + std::rotl(a[2], 12) + std::rotl(a[3], 18);
    for (uint64_t acc : a) h = (h ^ round(0, acc)) * kPrime1 + kPrime4;
    return h;
  }
};

AB_OP(hash)
    .doc("Hashes each row num_hash times: Out[i, k] = XXH64 of the bytes of row i of X with seed k, modulo mod_by.")
    .in("X", "[rows, width] int64 or int32")
    .out("Out", "[rows, num_hash, 1], dtype and LoD of X")
    .attr<int32_t>("num_hash", 1, "number of hashes per row",
                   [](int32_t v) { AB_CHECK(v >= 1, InvalidArgument, "num_hash must be at least 1, got {}", v); })
    .attr<int64_t>("mod_by", 100000, "exclusive upper bound of the hashes",
                   [](int64_t v) { AB_CHECK(v >= 1, InvalidArgument, "mod_by must be at least 1, got {}", v); })
    .infer([](InferContext& c) {
      check_rank(c, "X", 2, 2);
      c.set_out("Out", Shape{c.in("X").shape[0], c.attr<int32_t>("num_hash"), 1}, c.in("X").dtype);
      c.share_lod("Out", "X");
    })
    .no_grad("ids have no gradient")
    .cpu<int64_t, int32_t>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
      const auto hashes = static_cast<uint64_t>(op.attr<int32_t>("num_hash"));
      const auto modulus = static_cast<uint64_t>(op.attr<int64_t>("mod_by"));
      return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const int64_t width = c[x].row_elems();
        const T* from = c[x].data<T>();
        T* to = c[out].mutable_data<T>();
        c.parallel_for(c[x].rows(), 2048, [=](int64_t begin, int64_t end) {
          T* at = to + begin * static_cast<int64_t>(hashes);
          for (int64_t r = begin; r < end; ++r) {
            for (uint64_t k = 0; k < hashes; ++k) {
              *at++ = static_cast<T>(Xxh64::of(from + r * width, static_cast<size_t>(width) * sizeof(T), k) % modulus);
            }
          }
        });
      };
    });

}  // namespace
}  // namespace anabranch::sparse::hash_op
